import { urlMistake } from '../../../../database/url.ts'
import { type Infer, integer, object, optional, secret } from '../../../../schema/dsl.ts'
import type { ReportIssue } from '../../../../schema/report.ts'
import type { RowLimits } from './row-store.ts'

const defaultLimits = { maxBytes: 1_073_741_824, maxEntries: 100_000 }

/** `config.responseCache`. */
export const cacheDatabaseSchema = object(
  {
    url: optional(
      secret({
        doc: '`sqlite://<path>` or `postgres://…`. Default: `config.database.url`.',
        example: 'sqlite:///var/lib/tollgate/cache.db',
      }),
    ),
    maxBytes: optional(
      integer(
        {
          doc: 'Bytes of stored responses in the database. The oldest ones are removed first.',
          default: defaultLimits.maxBytes,
        },
        { min: 1_048_576, max: 1_099_511_627_776 },
      ),
    ),
    maxEntries: optional(
      integer(
        { doc: 'Number of stored responses in the database.', default: defaultLimits.maxEntries },
        { min: 1, max: 10_000_000 },
      ),
    ),
  },
  {
    doc: 'The database of response caches with `store: database`, shared by threads and replicas. Read at start.',
  },
)

/** Sections of `config` that the cache reads. */
export type CacheDatabaseSections = {
  readonly responseCache?: Infer<typeof cacheDatabaseSchema> | undefined
  readonly database?: { readonly url?: string | undefined } | undefined
}

/** Plain data. `url` contains a password; not for logs. */
export type CacheDatabaseSettings = { readonly url: string; readonly limits: RowLimits }

/** Settings of the database with defaults; undefined without one. */
export function cacheDatabaseOf({
  responseCache = {},
  database,
}: CacheDatabaseSections): CacheDatabaseSettings | undefined {
  const { url = database?.url ?? '', maxBytes, maxEntries } = responseCache
  if (url === '') return undefined
  return {
    url,
    limits: {
      maxBytes: maxBytes ?? defaultLimits.maxBytes,
      maxEntries: maxEntries ?? defaultLimits.maxEntries,
    },
  }
}

/** Checks the address, with paths inside `config`. */
export function checkCacheDatabase({ responseCache }: CacheDatabaseSections, report: ReportIssue): void {
  const { url } = responseCache ?? {}
  const mistake = url === undefined ? undefined : urlMistake(url)
  if (mistake !== undefined) report(['responseCache', 'url'], mistake)
}
