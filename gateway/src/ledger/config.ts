import { isPostgresUrl, sqlitePathOf, urlMistake } from '../database/url.ts'
import { hourMs, parseDuration } from '../lib/duration.ts'
import {
  boolean,
  cel,
  duration,
  enumeration,
  type Infer,
  integer,
  name,
  object,
  optional,
  secret,
} from '../schema/dsl.ts'
import type { ReportIssue } from '../schema/report.ts'

const defaultRetention = '30d'
const defaultUsageRetention = '400d'
const defaultMaxPayloadSize = 32 * 1024
const defaultMaxQueue = 200_000
const defaultMaxConnections = 5

/** `config.logging.database`. */
export const ledgerSchema = object(
  {
    enabled: optional(
      boolean({
        doc: 'Whether requests are recorded. `false` disables the ledger although `config.database` is set.',
        default: true,
      }),
    ),
    url: optional(
      secret({
        doc: '`sqlite://<path>` or `postgres://…`. Default: `config.database.url`. Without both, requests are not recorded.',
        example: 'sqlite:///var/lib/tollgate/ledger.db',
      }),
    ),
    maxConnections: optional(
      integer(
        {
          doc: 'Connections to Postgres: one writes, the others read for the log and usage API.',
          default: defaultMaxConnections,
        },
        { min: 2, max: 1000 },
      ),
    ),
    retention: optional(
      duration({
        doc: 'Time after which rows of requests are deleted, with their explanations and payloads.',
        default: defaultRetention,
      }),
    ),
    usageRetention: optional(
      duration({
        doc: 'Time after which the sums by hour and day and the past windows of budgets are deleted. Not shorter than `retention`.',
        default: defaultUsageRetention,
      }),
    ),
    payloads: optional(
      boolean({
        doc: 'Whether prompts and responses of LLM requests, and parameters and results of MCP calls, are stored. In prompts and responses, matches of the regex guards of the request are masked. Credentials of the gateway are never stored.',
        default: false,
      }),
    ),
    maxPayloadSize: optional(
      integer(
        {
          doc: 'Bytes that are stored of a prompt, and of a response. The rest is cut off.',
          default: defaultMaxPayloadSize,
        },
        { min: 1, max: 1024 * 1024 },
      ),
    ),
    maxQueue: optional(
      integer(
        {
          doc: 'Rows that wait for the database. Beyond half of it, payloads and explanations are dropped; beyond it, rows are added up to sums, which retain every amount.',
          default: defaultMaxQueue,
          advanced: true,
        },
        { min: 1_000, max: 10_000_000 },
      ),
    ),
    spool: optional(
      name({
        doc: 'Folder for entries that the database has not confirmed. Default: beside the SQLite file, or for Postgres in the temporary folder of the system. Created for the current user only. It must survive a restart, or entries of an outage do not.',
        example: '/var/lib/tollgate/spool',
      }),
    ),
  },
  { doc: 'The ledger: a row for each LLM request and MCP call, and sums of usage and cost. Read at start.' },
)

/** `config.logging.explain`. */
export const explainSchema = enumeration(['errors', 'all', 'off'], {
  doc: 'Requests whose explanation is recorded in the ledger: refused and failed ones, all, or none.',
  default: 'errors',
})

const attributeRoots = ['now', 'request', 'source', 'jwt', 'basicAuth', 'apiKey'] as const

/** `config.standardAttributes`. */
export const standardAttributesSchema = object(
  {
    user: optional(
      cel(
        {
          doc: 'User of a request in the ledger. Default: the first of `apiKey.user`, `apiKey.name`, `apiKey.owner`, `jwt.sub`, `jwt.email` and `basicAuth.username`.',
          example: 'jwt.preferred_username',
        },
        attributeRoots,
      ),
    ),
    group: optional(
      cel(
        {
          doc: 'Group of a request in the ledger. Default: `apiKey.group`, or the first of `jwt.groups`.',
          example: 'request.headers["x-team"]',
        },
        attributeRoots,
      ),
    ),
  },
  { doc: 'Attributes of requests in the ledger, as CEL expressions. An expression that fails has no value.' },
)

export type LedgerConfig = Infer<typeof ledgerSchema>
export type ExplainMode = Infer<typeof explainSchema>
export type StandardAttributesConfig = Infer<typeof standardAttributesSchema>

/** Sections of `config` that the ledger reads. */
export type LedgerSections = {
  readonly logging?:
    | { readonly database?: LedgerConfig | undefined; readonly explain?: ExplainMode | undefined }
    | undefined
  readonly standardAttributes?: StandardAttributesConfig | undefined
  readonly database?: { readonly url?: string | undefined } | undefined
}

/** Settings of the ledger with defaults: plain data. */
export type LedgerSettings = {
  /** Contains a password; not for logs. */
  readonly url: string
  /** Configuration field of the URL, for errors. */
  readonly urlField: string
  readonly kind: 'sqlite' | 'postgres'
  readonly maxConnections: number
  readonly retentionMs: number
  readonly usageRetentionMs: number
  readonly payloads: boolean
  /** Bytes. */
  readonly maxPayloadSize: number
  /** Rows. */
  readonly maxQueue: number
  /** Folder; undefined for the default. */
  readonly spool: string | undefined
  readonly explain: ExplainMode
  /** CEL expressions; undefined for the defaults. */
  readonly attributes: StandardAttributesConfig
}

/** Settings of the ledger; undefined without a database, or if it is disabled. */
export function ledgerSettingsOf({
  logging,
  standardAttributes,
  database,
}: LedgerSections): LedgerSettings | undefined {
  const config = logging?.database ?? {}
  const url = config.url ?? database?.url ?? ''
  if (url === '' || config.enabled === false) return undefined
  return {
    url,
    urlField: config.url === undefined ? 'config.database.url' : 'config.logging.database.url',
    kind: isPostgresUrl(url) ? 'postgres' : 'sqlite',
    maxConnections: config.maxConnections ?? defaultMaxConnections,
    retentionMs: parseDuration(config.retention ?? defaultRetention) ?? 0,
    usageRetentionMs: parseDuration(config.usageRetention ?? defaultUsageRetention) ?? 0,
    payloads: config.payloads ?? false,
    maxPayloadSize: config.maxPayloadSize ?? defaultMaxPayloadSize,
    maxQueue: config.maxQueue ?? defaultMaxQueue,
    spool: config.spool,
    explain: logging?.explain ?? 'errors',
    attributes: standardAttributes ?? {},
  }
}

/** Checks rules beyond the schema, with paths inside `config`. */
export function checkLedger(sections: LedgerSections, report: ReportIssue): void {
  const config = sections.logging?.database
  if (config === undefined) return
  const { url, retention, usageRetention } = config
  const mistake = url === undefined ? undefined : urlMistake(url)
  const at = (field: string) => ['logging', 'database', field]
  if (mistake !== undefined) report(at('url'), mistake)
  else if (url !== undefined && !isPostgresUrl(url) && !isFilePath(sqlitePathOf(url)))
    report(at('url'), 'must name a file, for example sqlite:///var/lib/tollgate/ledger.db')
  if (config.enabled === true && ledgerSettingsOf(sections) === undefined)
    report(at('enabled'), 'requires config.logging.database.url or config.database.url')
  const retentionMs = parseDuration(retention ?? defaultRetention) ?? 0
  const usageRetentionMs = parseDuration(usageRetention ?? defaultUsageRetention) ?? 0
  if (retentionMs < hourMs) report(at('retention'), 'must be at least 1h')
  if (usageRetentionMs < retentionMs)
    report(
      at(usageRetention === undefined ? 'retention' : 'usageRetention'),
      usageRetention === undefined
        ? `must not be longer than usageRetention (${defaultUsageRetention})`
        : `must not be shorter than retention (${retention ?? defaultRetention})`,
    )
}

function isFilePath(path: string): boolean {
  return path !== '' && !path.includes('\0') && !path.startsWith(':memory:')
}
