import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;

import org.apache.flink.api.common.JobID;
import org.apache.flink.autoscaler.JobAutoScalerContext;
import org.apache.flink.autoscaler.JobAutoScalerImpl;
import org.apache.flink.autoscaler.RestApiMetricsCollector;
import org.apache.flink.autoscaler.ScalingExecutor;
import org.apache.flink.autoscaler.ScalingMetricEvaluator;
import org.apache.flink.autoscaler.event.LoggingEventHandler;
import org.apache.flink.autoscaler.realizer.ScalingRealizer;
import org.apache.flink.autoscaler.state.InMemoryAutoScalerStateStore;
import org.apache.flink.autoscaler.tuning.ConfigChanges;
import org.apache.flink.client.program.rest.RestClusterClient;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.RestOptions;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.runtime.highavailability.nonha.standalone.StandaloneClientHAServices;
import org.apache.flink.runtime.jobgraph.JobResourceRequirements;
import org.apache.flink.runtime.jobgraph.JobVertexID;
import org.apache.flink.runtime.jobgraph.JobVertexResourceRequirements;
import org.apache.flink.runtime.rest.messages.EmptyRequestBody;
import org.apache.flink.runtime.rest.messages.JobMessageParameters;
import org.apache.flink.runtime.rest.messages.job.JobResourceRequirementsBody;
import org.apache.flink.runtime.rest.messages.job.JobResourceRequirementsHeaders;
import org.apache.flink.runtime.rest.messages.job.JobResourcesRequirementsUpdateHeaders;

/**
 * Flink's autoscaler for one job, until the input of this process ends. It reads metrics and sets parallelism by REST.
 *
 * <p>Autoscale PORT JOB EVERY_MS KEY=VALUE...: the last are the autoscaler's own settings.
 */
public final class Autoscale {
    private static final long ANSWER_S = 10;

    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(args[0]);
        JobID job = JobID.fromHexString(args[1]);
        long everyMs = Long.parseLong(args[2]);
        Configuration settings = new Configuration();
        settings.set(RestOptions.PORT, port);
        Arrays.stream(args).skip(3).map(word -> word.split("=", 2)).forEach(pair -> settings.setString(pair[0], pair[1]));
        Thread loop = new Thread(() -> decide(port, job, everyMs, settings), "autoscaler");
        loop.setDaemon(true);
        loop.setUncaughtExceptionHandler(
                (thread, error) -> {
                    error.printStackTrace();
                    System.exit(1);
                });
        loop.start();
        RunFolder.awaitEndOfInput();
        System.exit(0);
    }

    private static void decide(int port, JobID job, long everyMs, Configuration settings) {
        var events = new LoggingEventHandler<JobID, JobAutoScalerContext<JobID>>();
        var store = new InMemoryAutoScalerStateStore<JobID, JobAutoScalerContext<JobID>>();
        var autoscaler =
                new JobAutoScalerImpl<>(
                        new RestApiMetricsCollector<JobID, JobAutoScalerContext<JobID>>(),
                        new ScalingMetricEvaluator(),
                        new ScalingExecutor<JobID, JobAutoScalerContext<JobID>>(events, store),
                        events,
                        new Requirements(),
                        store);
        while (true) {
            long began = System.nanoTime();
            try {
                try (var client = client(port, settings)) {
                    var status = client.getJobStatus(job).get(ANSWER_S, TimeUnit.SECONDS);
                    autoscaler.scale(
                            new JobAutoScalerContext<>(
                                    job, job, status, settings, new UnregisteredMetricsGroup(), () -> client(port, settings)));
                }
                Thread.sleep(Math.max(0, everyMs - (System.nanoTime() - began) / 1_000_000));
            } catch (InterruptedException end) {
                return;
            } catch (Exception error) {
                System.err.println("autoscaler: " + error);
            }
        }
    }

    private static RestClusterClient<String> client(int port, Configuration settings) throws Exception {
        return new RestClusterClient<>(
                settings, "local", (configuration, errors) -> new StandaloneClientHAServices("http://127.0.0.1:" + port));
    }

    /** Asks the adaptive scheduler for as many replicas as the autoscaler wants. */
    private static final class Requirements implements ScalingRealizer<JobID, JobAutoScalerContext<JobID>> {
        @Override
        public void realizeParallelismOverrides(JobAutoScalerContext<JobID> context, Map<String, String> wanted) throws Exception {
            var parameters = new JobMessageParameters();
            parameters.jobPathParameter.resolve(context.getJobID());
            try (var client = context.getRestClusterClient()) {
                var now =
                        client.sendRequest(new JobResourceRequirementsHeaders(), parameters, EmptyRequestBody.getInstance())
                                .get(ANSWER_S, TimeUnit.SECONDS)
                                .asJobResourceRequirements()
                                .orElseThrow()
                                .getJobVertexParallelisms();
                var next = new HashMap<>(now);
                wanted.forEach((vertex, size) -> next.put(JobVertexID.fromHexString(vertex), upTo(Integer.parseInt(size))));
                if (!next.equals(now)) {
                    client.sendRequest(
                                    new JobResourcesRequirementsUpdateHeaders(),
                                    parameters,
                                    new JobResourceRequirementsBody(new JobResourceRequirements(next)))
                            .get(ANSWER_S, TimeUnit.SECONDS);
                }
            }
        }

        private static JobVertexResourceRequirements upTo(int replicas) {
            return new JobVertexResourceRequirements(new JobVertexResourceRequirements.Parallelism(1, replicas));
        }

        @Override
        public void realizeConfigOverrides(JobAutoScalerContext<JobID> context, ConfigChanges changes) {
            // Memory is not tuned.
        }
    }
}
