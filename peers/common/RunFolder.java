import java.io.IOException;
import java.io.Writer;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Instant;
import java.util.UUID;

/** The folder of one run: what is due when, when the run began, and what left it. */
final class RunFolder {
    private static final long READY_US = 3_000_000;

    private final Path folder;

    RunFolder(String folder) {
        this.folder = Path.of(folder);
    }

    /** Microseconds after the beginning at which tuples 0, 1, 2 and so on are due. */
    long[] due() throws IOException {
        try (var lines = Files.lines(folder.resolve("schedule"))) {
            return lines.mapToLong(Long::parseLong).toArray();
        }
    }

    boolean begun() {
        return Files.exists(folder.resolve("origin"));
    }

    /** When the run began, in microseconds since 1970. Whoever asks first says: soon. */
    long origin() throws IOException {
        Path file = folder.resolve("origin");
        if (!begun()) {
            Path written = Files.writeString(unused("origin"), Long.toString(now() + READY_US));
            try {
                // A link is made whole or not at all, and never over another.
                Files.createLink(file, written);
            } catch (FileAlreadyExistsException late) {
                // Somebody else was first.
            }
            Files.delete(written);
        }
        return Long.parseLong(Files.readString(file));
    }

    /** The first tuple that a source that starts again has to send again. */
    int position() throws IOException {
        Path file = folder.resolve("position");
        return Files.exists(file) ? Integer.parseInt(Files.readString(file)) : 0;
    }

    void keepPosition(int number) throws IOException {
        Path written = Files.writeString(unused("position"), Integer.toString(number));
        Files.move(written, folder.resolve("position"), StandardCopyOption.ATOMIC_MOVE);
    }

    /** A file of one replica of the last operator. */
    Writer output() throws IOException {
        return Files.newBufferedWriter(unused("out"));
    }

    /** One line for a tuple that has been served, at once where others see it; it was due so long after the beginning. */
    static void write(Writer output, long number, long dueUs) throws IOException {
        output.write(number + "," + dueUs + "," + now() + "\n");
        output.flush();
    }

    /** The text of a tweet with this number. */
    static String text(long number) {
        return "tweet " + number + " about what happens in the world today, by somebody who has something to say about it";
    }

    static long now() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000 + now.getNano() / 1_000;
    }

    /** Wait until whoever started this process closes its input or ends. */
    static void awaitEndOfInput() throws IOException {
        while (System.in.read() >= 0) {
            // Nothing is said there.
        }
    }

    private Path unused(String name) {
        return folder.resolve(name + "-" + UUID.randomUUID());
    }
}
