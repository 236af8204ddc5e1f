import { enumeration, list, name, optional } from '../../schema/dsl.ts'
import { metricsSchema } from './metrics-config.ts'
import { processTracingSchema } from './tracing-config.ts'

/** Fields of `config` about telemetry, beside the log. */
export const processTelemetryFields = {
  tracing: optional(processTracingSchema),
  metrics: optional(metricsSchema),
  histograms: optional(
    enumeration(['classic', 'native', 'both'], {
      doc: 'Buckets of histograms: fixed ones, those of native histograms of Prometheus (exponential histograms over OTLP), or both. Read at start.',
      default: 'classic',
    }),
  ),
  sensitiveHeaders: optional(
    list(name({ doc: 'Name of a header field, in any case.' }), {
      doc: 'Further headers with the hash of their value in fields of logs, spans and metrics and in `standardAttributes`. Names that suggest a credential (`authorization`, `cookie`, `token`, `key`, `secret`...) need no entry. Applies on reload, to the ledger after a restart.',
      example: ['x-account-number'],
    }),
  ),
}
