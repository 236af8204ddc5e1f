import { celVariablesOf } from '../../policies/registry/cel-variables.ts'
import {
  anyOfShapes,
  cel,
  enumeration,
  exactlyOne,
  type Infer,
  list,
  map,
  name,
  object,
  optional,
  string,
} from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { type LogLevelConfig, logLevelMistake } from '../../telemetry/log-level.ts'
import type { NamedBackend } from '../../upstream/config.ts'
import { checkCollector, collectorAddress, collectorFields } from './collector.ts'

const atEnd = [...celVariablesOf('gateway', 'end')]

/** `filter` of lines and records. */
export const accessLogFilter = optional(
  cel(
    {
      doc: 'Requests with a line: those for which the expression is true at their end. An expression that fails is false.',
      example: 'response.code >= 400',
    },
    atEnd,
  ),
)

const add = optional(
  map(cel({ doc: 'CEL expression.' }, atEnd), {
    doc: 'Fields by name, evaluated at the end of a request. An expression that fails is null.',
    example: { user: 'jwt.sub' },
  }),
)

const remove = optional(
  list(name({ doc: 'Name of a field.' }), {
    doc: 'Fields that lines do not have, by our name or by that of agentgateway (`http.path`).',
  }),
)

/** `fields` of `config.logging` and of the export. */
const fields = optional(object({ add, remove }, { doc: 'Changes of fields.' }))

const levelDoc =
  'Least severe level that is written: debug, info, warn or error. The access log and the audit records are `info`. Of a list such as `info,module=debug` the level without a module applies.'

/** Fields of `config.logging` beside the ledger. */
export const loggingFields = {
  level: optional(
    anyOfShapes(
      [string({ doc: levelDoc }), list(string({ doc: 'A level, or `module=level`.' }), { doc: 'Levels.' })],
      { doc: levelDoc, default: 'info', suggestions: ['debug', 'info', 'warn', 'error'] },
    ),
  ),
  format: optional(
    enumeration(['json', 'text'], {
      doc: 'Form of the lines: JSON, or text with fields as `name=value`.',
      default: 'json',
    }),
  ),
  filter: accessLogFilter,
  fields,
}

/** `frontendPolicies.accessLog`. */
export const accessLogSchema = object(
  {
    filter: accessLogFilter,
    add,
    remove,
    otlp: optional(
      exactlyOne(
        collectorAddress,
        { ...collectorFields('logs'), filter: accessLogFilter, fields },
        {
          doc: 'Exports access log records to an OpenTelemetry collector. Without `fields`, records have the fields of lines.',
        },
      ),
    ),
  },
  {
    doc: 'Selection and fields of access log lines, and their export. It replaces `config.logging.filter` and adds to `config.logging.fields`.',
  },
)

export type AccessLogConfig = Infer<typeof accessLogSchema>

/** `filter` and `fields` of `config.logging`. */
export type LoggingFieldsConfig = {
  readonly filter?: string | undefined
  readonly fields?: Infer<typeof fields>
}

/** Reports problems of `config.logging` that the schema cannot express. */
export function checkLogging({ level }: { level?: LogLevelConfig | undefined }, report: ReportIssue): void {
  const mistake = level === undefined ? undefined : logLevelMistake(level)
  if (mistake !== undefined) report(['level'], mistake)
}

/** Reports problems of `frontendPolicies.accessLog` that the schema cannot express. */
export function checkAccessLog(
  { otlp }: AccessLogConfig,
  backends: readonly NamedBackend[],
  report: ReportIssue,
): void {
  if (otlp) checkCollector(otlp, backends, (path, message) => report(['otlp', ...path], message))
}
