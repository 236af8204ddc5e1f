import { isPostgresUrl, urlMistake } from '../database/url.ts'
import {
  boolean,
  enumeration,
  type Infer,
  integer,
  list,
  name,
  object,
  optional,
  secret,
} from '../schema/dsl.ts'
import type { ReportIssue } from '../schema/report.ts'

/** `config.storage`: storage of changes through the config API, and permissions for their content. */
export const storageSchema = object(
  {
    mode: optional(
      enumeration(['file', 'hybrid', 'readOnly'], {
        doc: 'Where changes through the API are stored: in this file, in `config.database`, or nowhere.',
        default: 'file',
      }),
    ),
    allowedEnv: optional(
      list(name({ doc: 'Name of an environment variable.', example: 'OPENAI_API_KEY' }), {
        doc: 'Environment variables that values sent to the API may refer to. Every other `$` in them is a plain dollar sign.',
        advanced: true,
      }),
    ),
    allowStdioTargets: optional(
      boolean({
        doc: 'Whether the API may set up MCP targets that run a program on this machine.',
        default: false,
      }),
    ),
    allowFilePaths: optional(
      boolean({
        doc: 'Whether values sent to the API may name files of this machine.',
        default: false,
        advanced: true,
      }),
    ),
    allowMetadataAddresses: optional(
      boolean({
        doc: 'Whether destinations set through the API, and in mode `file` names in this file, may lead to link-local addresses and to the metadata services of clouds. Names are checked at each connection, after they are resolved.',
        default: false,
        advanced: true,
      }),
    ),
    allowMachineIdentity: optional(
      boolean({
        doc: 'Whether values sent to the API may use the identity of this machine at a cloud (managed identity, workload identity, credentials of the environment). Its tokens are then sent to hosts of that cloud only.',
        default: false,
        advanced: true,
      }),
    ),
    allowFileCredentials: optional(
      boolean({
        doc: 'Whether records of mode `hybrid` may send credentials of the file to hosts that they name, such as the key in `mcp.policies` to an MCP target.',
        default: false,
        advanced: true,
      }),
    ),
    historyRecords: optional(
      integer(
        {
          doc: 'Changes in the history of mode `hybrid`; older ones are deleted.',
          default: 100_000,
          advanced: true,
        },
        { min: 100, max: 10_000_000 },
      ),
    ),
  },
  { doc: 'The config API: storage of changes, and permissions for their content.' },
)

/** `config.database`. */
export const databaseSchema = object(
  {
    url: optional(
      secret({
        doc: '`sqlite://<path>`, created where it does not exist, or `postgres://…`, which several replicas may share. Other schemes are refused.',
        example: 'sqlite:///var/lib/tollgate/tollgate.db',
      }),
    ),
    maxConnections: optional(
      integer(
        { doc: 'Connections to Postgres, the one that listens included.', default: 5 },
        { min: 1, max: 1000 },
      ),
    ),
    encryptionKey: optional(
      secret({
        doc: 'Encrypts secret fields at rest: 32 bytes as 64 hexadecimal digits or as base64.',
        example: '$TOLLGATE_ENCRYPTION_KEY',
      }),
    ),
    previousEncryptionKeys: optional(
      list(secret({ doc: 'An earlier key, in the form of `encryptionKey`.', example: '$TOLLGATE_OLD_KEY' }), {
        doc: 'Keys that decrypt only, for a rotation. Records of theirs are encrypted with `encryptionKey` in the background.',
        advanced: true,
      }),
    ),
  },
  { doc: 'The database of hybrid storage.' },
)

export type StorageConfig = Infer<typeof storageSchema>
export type DatabaseConfig = Infer<typeof databaseSchema>

/** Checks rules beyond the schema on `config.storage` and `config.database`, with paths inside `config`. */
export function checkStorage(
  settings: { storage?: StorageConfig | undefined; database?: DatabaseConfig | undefined },
  report: ReportIssue,
): void {
  const { storage, database } = settings
  const keys: [path: (string | number)[], key: string | undefined][] = [
    [['database', 'encryptionKey'], database?.encryptionKey],
    ...(database?.previousEncryptionKeys ?? []).map((key, index): [(string | number)[], string] => [
      ['database', 'previousEncryptionKeys', index],
      key,
    ]),
  ]
  for (const [path, key] of keys) {
    if (key !== undefined && !encryptionKeyForm.test(key))
      report(path, 'expected 32 bytes as 64 hexadecimal digits or as base64')
  }
  const { url, maxConnections } = database ?? {}
  const mistake = url === undefined ? undefined : urlMistake(url)
  if (mistake !== undefined) report(['database', 'url'], mistake)
  if (storage?.mode !== 'hybrid') return
  if (url === undefined || url === '') {
    report(['storage', 'mode'], 'config.storage.mode=hybrid requires config.database.url')
    return
  }
  if (isPostgresUrl(url) && maxConnections !== undefined && maxConnections < 2) {
    report(
      ['database', 'maxConnections'],
      'config.database.maxConnections must be at least 2 for PostgreSQL hybrid storage',
    )
  }
}

const encryptionKeyForm = /^(?:[0-9a-f]{64}|[A-Za-z0-9+/_-]{43}=?)$/i
