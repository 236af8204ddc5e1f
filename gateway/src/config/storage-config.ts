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

/** `config.storage`: where changes through the config resource API go, and what they may bring in. */
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
        doc: 'Whether values sent to the API may lead to link-local addresses and to the metadata services of clouds.',
        default: false,
        advanced: true,
      }),
    ),
  },
  { doc: 'The config resource API: where changes go, and what they may bring in.' },
)

/** `config.database`. */
export const databaseSchema = object(
  {
    url: optional(
      secret({
        doc: '`sqlite://<path>`, created where it does not exist, or `postgres://…`, which several replicas may share.',
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
  },
  { doc: 'The database of hybrid storage.' },
)

export type StorageConfig = Infer<typeof storageSchema>
export type DatabaseConfig = Infer<typeof databaseSchema>

type Report = (path: (string | number)[], message: string) => void

/** Reports what the schema cannot say about `config.storage` and `config.database`, with paths inside `config`. */
export function checkStorage(
  settings: { storage?: StorageConfig | undefined; database?: DatabaseConfig | undefined },
  report: Report,
): void {
  const { storage, database } = settings
  const key = database?.encryptionKey
  if (key !== undefined && !encryptionKeyForm.test(key)) {
    report(['database', 'encryptionKey'], 'expected 32 bytes as 64 hexadecimal digits or as base64')
  }
  if (storage?.mode !== 'hybrid') return
  const { url, maxConnections } = database ?? {}
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

/** Whether a `config.database.url` means Postgres; everything else is the path of a SQLite file. */
export function isPostgresUrl(url: string): boolean {
  return /^postgres(?:ql)?:\/\//i.test(url)
}

/** The file that a `config.database.url` of SQLite names. */
export function sqlitePathOf(url: string): string {
  return url.replace(/^sqlite:(?:\/\/)?/i, '').replace(/\?.*$/s, '')
}
