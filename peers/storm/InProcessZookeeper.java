package org.apache.storm.testing;

import java.io.File;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;

import org.apache.storm.shade.org.apache.zookeeper.server.NIOServerCnxnFactory;
import org.apache.storm.shade.org.apache.zookeeper.server.ZooKeeperServer;

/** The ZooKeeper of Storm's local mode, in place of Storm's own, which listens on all interfaces: on loopback, any port. */
public class InProcessZookeeper implements AutoCloseable {
    private final NIOServerCnxnFactory server = new NIOServerCnxnFactory();

    public InProcessZookeeper() throws Exception {
        File folder = Files.createTempDirectory("zookeeper").toFile();
        server.configure(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.startup(new ZooKeeperServer(folder, folder, ZooKeeperServer.DEFAULT_TICK_TIME));
    }

    public long getPort() {
        return server.getLocalPort();
    }

    @Override
    public void close() {
        server.shutdown();
    }
}
