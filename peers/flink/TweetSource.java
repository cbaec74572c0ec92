import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.connector.source.ReaderOutput;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.connector.source.SourceSplit;
import org.apache.flink.api.connector.source.SplitEnumerator;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.core.io.InputStatus;
import org.apache.flink.core.io.SimpleVersionedSerializer;

/** Tuples (number, due, text) at their due times, from one split, whose position is in every checkpoint. */
final class TweetSource implements Source<Tuple3<Long, Long, String>, TweetSource.Position, Boolean> {
    private final String folder;

    TweetSource(String folder) {
        this.folder = folder;
    }

    @Override
    public Boundedness getBoundedness() {
        return Boundedness.CONTINUOUS_UNBOUNDED;
    }

    @Override
    public SourceReader<Tuple3<Long, Long, String>, Position> createReader(SourceReaderContext context) throws IOException {
        return new Reader(context, new RunFolder(folder));
    }

    @Override
    public SplitEnumerator<Position, Boolean> createEnumerator(SplitEnumeratorContext<Position> context) {
        return new Enumerator(context, false);
    }

    @Override
    public SplitEnumerator<Position, Boolean> restoreEnumerator(SplitEnumeratorContext<Position> context, Boolean given) {
        return new Enumerator(context, given);
    }

    @Override
    public SimpleVersionedSerializer<Position> getSplitSerializer() {
        return new Ints<>() {
            @Override
            int number(Position position) {
                return position.next;
            }

            @Override
            Position of(int number) {
                return new Position(number);
            }
        };
    }

    @Override
    public SimpleVersionedSerializer<Boolean> getEnumeratorCheckpointSerializer() {
        return new Ints<>() {
            @Override
            int number(Boolean given) {
                return given ? 1 : 0;
            }

            @Override
            Boolean of(int number) {
                return number == 1;
            }
        };
    }

    /** The number of the next tuple: all that there is to remember. */
    record Position(int next) implements SourceSplit {
        @Override
        public String splitId() {
            return "all";
        }
    }

    /** Values that are one whole number. */
    private abstract static class Ints<T> implements SimpleVersionedSerializer<T> {
        abstract int number(T value);

        abstract T of(int number);

        @Override
        public int getVersion() {
            return 1;
        }

        @Override
        public byte[] serialize(T value) {
            return ByteBuffer.allocate(Integer.BYTES).putInt(number(value)).array();
        }

        @Override
        public T deserialize(int version, byte[] bytes) {
            return of(ByteBuffer.wrap(bytes).getInt());
        }
    }

    /** Gives the one split to the one reader. */
    private static final class Enumerator implements SplitEnumerator<Position, Boolean> {
        private final SplitEnumeratorContext<Position> context;
        private List<Position> back = List.of();
        private boolean given;

        Enumerator(SplitEnumeratorContext<Position> context, boolean given) {
            this.context = context;
            this.given = given;
        }

        @Override
        public void start() {}

        @Override
        public void handleSplitRequest(int subtask, String host) {}

        @Override
        public void addSplitsBack(List<Position> splits, int subtask) {
            back = splits;
            given = false;
        }

        @Override
        public void addReader(int subtask) {
            if (!given) {
                context.assignSplit(back.isEmpty() ? new Position(0) : back.get(0), subtask);
                given = true;
            }
        }

        @Override
        public Boolean snapshotState(long checkpoint) {
            return given;
        }

        @Override
        public void close() {}
    }

    /** Sends what is due, and says how many are overdue: the autoscaler asks. */
    private static final class Reader implements SourceReader<Tuple3<Long, Long, String>, Position> {
        private final RunFolder run;
        private final long[] due;
        private final CompletableFuture<Void> assigned = new CompletableFuture<>();
        private volatile long originUs = Long.MAX_VALUE;
        private volatile int next = -1;

        Reader(SourceReaderContext context, RunFolder run) throws IOException {
            this.run = run;
            this.due = run.due();
            context.metricGroup().setPendingRecordsGauge(this::overdue);
        }

        private long overdue() {
            if (next < 0) {
                return 0;
            }
            long passedUs = RunFolder.now() - originUs;
            int found = java.util.Arrays.binarySearch(due, passedUs);
            return Math.max(0, (found < 0 ? -found - 1 : found + 1) - next);
        }

        @Override
        public void start() {}

        @Override
        public InputStatus pollNext(ReaderOutput<Tuple3<Long, Long, String>> output) {
            if (next < 0 || next >= due.length || originUs + due[next] > RunFolder.now()) {
                return InputStatus.NOTHING_AVAILABLE;
            }
            output.collect(Tuple3.of((long) next, due[next], RunFolder.text(next)));
            next++;
            return InputStatus.MORE_AVAILABLE;
        }

        @Override
        public CompletableFuture<Void> isAvailable() {
            if (next < 0) {
                return assigned;
            }
            if (next >= due.length) {
                return new CompletableFuture<>();
            }
            long waitUs = originUs + due[next] - RunFolder.now();
            return waitUs <= 0
                    ? CompletableFuture.completedFuture(null)
                    : CompletableFuture.runAsync(() -> {}, CompletableFuture.delayedExecutor(waitUs, TimeUnit.MICROSECONDS));
        }

        @Override
        public List<Position> snapshotState(long checkpoint) {
            return next < 0 ? List.of() : List.of(new Position(next));
        }

        @Override
        public void addSplits(List<Position> splits) {
            try {
                originUs = run.origin();
            } catch (IOException error) {
                throw new java.io.UncheckedIOException(error);
            }
            next = splits.get(0).next();
            assigned.complete(null);
        }

        @Override
        public void notifyNoMoreSplits() {}

        @Override
        public void close() {}
    }
}
