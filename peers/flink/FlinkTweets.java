import java.io.Writer;
import java.util.Arrays;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.typeinfo.TypeHint;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * Four operators that wait, in Flink's local mode, until the input of this process ends.
 *
 * <p>FlinkTweets FOLDER SERVICE_MS START KEY=VALUE...: the last are Flink's own settings.
 */
public final class FlinkTweets {
    private static final TypeInformation<Tuple3<Long, Long, String>> TWEET = TypeInformation.of(new TypeHint<>() {});

    public static void main(String[] args) throws Exception {
        String folder = args[0];
        long serviceMs = Long.parseLong(args[1]);
        int start = Integer.parseInt(args[2]);
        Configuration settings = new Configuration();
        Arrays.stream(args).skip(3).map(word -> word.split("=", 2)).forEach(pair -> settings.setString(pair[0], pair[1]));
        StreamExecutionEnvironment flink = StreamExecutionEnvironment.createLocalEnvironmentWithWebUI(settings);
        flink.disableOperatorChaining();
        DataStream<Tuple3<Long, Long, String>> stream =
                flink.fromSource(new TweetSource(folder), WatermarkStrategy.noWatermarks(), "tweets", TWEET)
                        .setParallelism(1)
                        .setMaxParallelism(1);
        for (String name : new String[] {"parse", "content", "author"}) {
            stream = stream.rebalance().map(new Served(serviceMs, null)).returns(TWEET).name(name).setParallelism(start);
        }
        stream.rebalance()
                .map(new Served(serviceMs, folder))
                .returns(TWEET)
                .name("store")
                .setParallelism(start);
        flink.executeAsync("tweets");
        RunFolder.awaitEndOfInput();
        System.exit(0);
    }

    /** Waits, as for a service elsewhere; with a folder, also writes down what it served. */
    private static final class Served extends RichMapFunction<Tuple3<Long, Long, String>, Tuple3<Long, Long, String>> {
        private final long serviceMs;
        private final String folder;
        private transient Writer output;

        Served(long serviceMs, String folder) {
            this.serviceMs = serviceMs;
            this.folder = folder;
        }

        @Override
        public void open(OpenContext context) throws Exception {
            output = folder == null ? null : new RunFolder(folder).output();
        }

        @Override
        public Tuple3<Long, Long, String> map(Tuple3<Long, Long, String> tweet) throws Exception {
            Thread.sleep(serviceMs);
            if (output != null) {
                RunFolder.write(output, tweet.f0, tweet.f1);
            }
            return tweet;
        }

        @Override
        public void close() throws Exception {
            if (output != null) {
                output.close();
            }
        }
    }
}
