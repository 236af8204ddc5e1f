import type { ReportIssue } from '../../schema/report.ts'
import type { LogLevelConfig } from '../../telemetry/log-level.ts'
import type { NamedBackend } from '../../upstream/config.ts'
import { type AccessLogConfig, checkAccessLog, checkLogging } from './access-log-config.ts'
import { checkMetrics, type MetricsConfig } from './metrics-config.ts'
import {
  checkProcessTracing,
  checkTracing,
  type ProcessTracingConfig,
  type TracingConfig,
} from './tracing-config.ts'

/** Sections of the configuration with telemetry. */
export type TelemetrySections = {
  readonly config?:
    | {
        readonly tracing?: ProcessTracingConfig | undefined
        readonly metrics?: MetricsConfig | undefined
        readonly logging?: { readonly level?: LogLevelConfig | undefined } | undefined
      }
    | undefined
  readonly frontendPolicies?:
    | { readonly tracing?: TracingConfig | undefined; readonly accessLog?: AccessLogConfig | undefined }
    | undefined
}

/** Reports problems of telemetry that the schema cannot express. */
export function checkTelemetry(
  { config, frontendPolicies }: TelemetrySections,
  backends: readonly NamedBackend[],
  report: ReportIssue,
): void {
  const under =
    (section: string, key: string): ReportIssue =>
    (path, message) =>
      report([section, key, ...path], message)
  if (frontendPolicies?.tracing)
    checkTracing(frontendPolicies.tracing, backends, under('frontendPolicies', 'tracing'))
  if (frontendPolicies?.accessLog)
    checkAccessLog(frontendPolicies.accessLog, backends, under('frontendPolicies', 'accessLog'))
  if (config?.metrics) checkMetrics(config.metrics, backends, under('config', 'metrics'))
  if (config?.logging) checkLogging(config.logging, under('config', 'logging'))
  if (config?.tracing) checkProcessTracing(config.tracing, under('config', 'tracing'))
}
