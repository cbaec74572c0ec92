import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeSet;

import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.generated.RebalanceOptions;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;

/**
 * Four bolts that wait, in Storm's local mode, until the input of this process ends.
 *
 * <p>StormTweets FOLDER SERVICE_MS START MOST REBALANCE_S KEY=NUMBER...: after REBALANCE_S seconds (0: never) every bolt
 * gets MOST executors; the last are Storm's own settings.
 */
public final class StormTweets {
    private static final String[] BOLTS = {"parse", "content", "author", "store"};

    public static void main(String[] args) throws Exception {
        String folder = args[0];
        long serviceMs = Long.parseLong(args[1]);
        int start = Integer.parseInt(args[2]);
        int most = Integer.parseInt(args[3]);
        long rebalanceUs = (long) (Double.parseDouble(args[4]) * 1e6);
        Config settings = new Config();
        Arrays.stream(args).skip(5).map(word -> word.split("=", 2)).forEach(pair -> settings.put(pair[0], Long.parseLong(pair[1])));
        TopologyBuilder topology = new TopologyBuilder();
        topology.setSpout("tweets", new Spout(folder), 1);
        String before = "tweets";
        for (String name : BOLTS) {
            String output = name.equals("store") ? folder : null;
            // A bolt can never have more executors than it has tasks.
            topology.setBolt(name, new Served(serviceMs, output), start).setNumTasks(most).shuffleGrouping(before);
            before = name;
        }
        LocalCluster storm = new LocalCluster();
        storm.submitTopology("tweets", settings, topology.createTopology());
        if (rebalanceUs > 0) {
            Thread rebalance = new Thread(() -> rebalance(storm, folder, rebalanceUs, most), "rebalance");
            rebalance.setDaemon(true);
            rebalance.start();
        }
        RunFolder.awaitEndOfInput();
        // Storm's own shutdown takes long, and nothing is left to be kept.
        Runtime.getRuntime().halt(0);
    }

    private static void rebalance(LocalCluster storm, String folder, long afterUs, int most) {
        try {
            RunFolder run = new RunFolder(folder);
            while (!run.begun() || RunFolder.now() < run.origin() + afterUs) {
                Thread.sleep(10);
            }
            RebalanceOptions options = new RebalanceOptions();
            options.set_wait_secs(0);
            for (String name : BOLTS) {
                options.put_to_num_executors(name, most);
            }
            System.out.println("rescaled," + RunFolder.now() + "," + most);
            storm.rebalance("tweets", options);
        } catch (Exception error) {
            System.err.println("rebalance: " + error);
        }
    }

    /** Sends what is due, again what was not served in time; after a restart, from the first that may not have been. */
    private static final class Spout extends BaseRichSpout {
        private static final long KEEP_US = 1_000_000;

        private final String folder;
        private transient RunFolder run;
        private transient SpoutOutputCollector collector;
        private transient long[] due;
        private transient long originUs;
        private transient long keptUs;
        private transient int next;
        private transient TreeSet<Integer> pending;
        private transient ArrayDeque<Integer> failed;

        Spout(String folder) {
            this.folder = folder;
        }

        @Override
        public void open(Map<String, Object> settings, TopologyContext context, SpoutOutputCollector collector) {
            this.collector = collector;
            run = new RunFolder(folder);
            pending = new TreeSet<>();
            failed = new ArrayDeque<>();
            try {
                due = run.due();
                originUs = run.origin();
                next = run.position();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        @Override
        public void nextTuple() {
            keepPosition();
            if (!failed.isEmpty()) {
                send(failed.poll());
            } else if (next < due.length && originUs + due[next] <= RunFolder.now()) {
                pending.add(next);
                send(next++);
            }
        }

        private void send(int number) {
            collector.emit(new Values((long) number, due[number], RunFolder.text(number)), number);
        }

        private void keepPosition() {
            long now = RunFolder.now();
            if (now - keptUs >= KEEP_US) {
                keptUs = now;
                try {
                    run.keepPosition(pending.isEmpty() ? next : pending.first());
                } catch (IOException error) {
                    throw new UncheckedIOException(error);
                }
            }
        }

        @Override
        public void ack(Object number) {
            pending.remove((Integer) number);
        }

        @Override
        public void fail(Object number) {
            failed.add((Integer) number);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("number", "due", "text"));
        }
    }

    /** Waits, as for a service elsewhere; with a folder, writes down what it served, without one it passes it on. */
    private static final class Served extends BaseRichBolt {
        private final long serviceMs;
        private final String folder;
        private transient OutputCollector collector;
        private transient Writer output;

        Served(long serviceMs, String folder) {
            this.serviceMs = serviceMs;
            this.folder = folder;
        }

        @Override
        public void prepare(Map<String, Object> settings, TopologyContext context, OutputCollector collector) {
            this.collector = collector;
            try {
                output = folder == null ? null : new RunFolder(folder).output();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        @Override
        public void execute(Tuple tweet) {
            try {
                Thread.sleep(serviceMs);
                if (output == null) {
                    collector.emit(tweet, tweet.getValues());
                } else {
                    RunFolder.write(output, tweet.getLong(0), tweet.getLong(1));
                }
            } catch (InterruptedException end) {
                Thread.currentThread().interrupt();
                return;
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
            collector.ack(tweet);
        }

        @Override
        public void cleanup() {
            try {
                if (output != null) {
                    output.close();
                }
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("number", "due", "text"));
        }
    }
}
