import { createHash } from 'node:crypto'
import { asGatewayError, GatewayError } from '../../../../lib/gateway-error.ts'
import { readAll } from '../../../../net/http/body.ts'
import type { CompileContext } from '../../../../pipeline/compile-context.ts'
import { type ApiDocument, type ReadDocument, readApiDocument } from './document.ts'
import { parseDocument, readFetchedDocument } from './document-task.ts'

/** Returns the document. Rejects with a `GatewayError`. */
export type DocumentSource = () => Promise<ApiDocument>

export type SourceContext = Pick<
  CompileContext,
  'send' | 'log' | 'clock' | 'readFile' | 'threads' | 'workQueue'
> & {
  readonly parseYaml: (text: string) => unknown
}

/** `{file}`, `{url}`, the document as an object, or as text. */
export type SourceConfig = Record<string, unknown> | string

const maxDocumentBytes = 16 * 1024 * 1024
const fetchTimeoutMs = 30_000
/** Refresh interval of a fetched document, and retry interval after a failure. */
const freshMs = 5 * 60_000
const retryMs = 5_000

/** Reads an inline document; undefined for other sources. */
export function readInline(config: SourceConfig): ReadDocument | undefined {
  if (typeof config === 'string' || kindOf(config) !== 'inline') return undefined
  return readApiDocument(config)
}

/** Unexpected key next to `file` or `url`, which the schema cannot distinguish from an inline document. */
export function unexpectedKey(config: SourceConfig): string | undefined {
  if (typeof config === 'string') return undefined
  const kind = kindOf(config)
  return kind === 'inline' ? undefined : Object.keys(config).find((key) => key !== kind)
}

/**
 * Creates the document source of a target. Files and inline documents are read immediately and their errors
 * thrown; a URL is fetched at first use, so that the gateway starts without that server.
 */
export function createSource(
  targetName: string,
  config: SourceConfig,
  context: SourceContext,
): DocumentSource {
  const { parseYaml, readFile } = context
  if (typeof config !== 'string') {
    const { file, url } = config
    if (kindOf(config) === 'url' && typeof url === 'string') return fetchedSource(targetName, url, context)
    if (kindOf(config) === 'file' && typeof file === 'string') {
      return staticSource(targetName, parseDocument(readFile(file), parseYaml), context, ` (${file})`)
    }
    return staticSource(targetName, readApiDocument(config), context)
  }
  return staticSource(targetName, parseDocument(config, parseYaml), context)
}

function kindOf(config: Record<string, unknown>): 'file' | 'url' | 'inline' {
  if (config['openapi'] !== undefined) return 'inline'
  if (typeof config['file'] === 'string') return 'file'
  return typeof config['url'] === 'string' ? 'url' : 'inline'
}

function staticSource(
  targetName: string,
  read: ReadDocument,
  { log }: SourceContext,
  where = '',
): DocumentSource {
  if (read.kind === 'mistakes')
    throw new Error(`mcp.targets "${targetName}": OpenAPI document${where}: ${formatProblems(read)}`)
  logSkipped(targetName, read.document, log)
  const document = Promise.resolve(read.document)
  return () => document
}

const maxShownMistakes = 5

function formatProblems({ mistakes }: ReadDocument & { kind: 'mistakes' }): string {
  const shown = mistakes
    .slice(0, maxShownMistakes)
    .map(({ place, message }) => (place.length === 0 ? message : `${place.join('.')}: ${message}`))
  const more = mistakes.length - shown.length
  return shown.join('; ') + (more > 0 ? `; and ${more} more` : '')
}

function logSkipped(targetName: string, { skipped: leftOut }: ApiDocument, log: SourceContext['log']): void {
  for (const reason of leftOut.slice(0, maxShownMistakes)) {
    log.warn({ target: targetName, reason }, 'OpenAPI operation skipped')
  }
}

/** Source with one fetch at a time; the last valid document is used during refreshes and failures. */
function fetchedSource(targetName: string, url: string, context: SourceContext): DocumentSource {
  const { clock, log } = context
  let good: FetchedDocument | undefined
  let failure: GatewayError | undefined
  let fetching: Promise<FetchedDocument> | undefined
  let nextAt = 0
  return () => {
    if (clock.monotonic() >= nextAt) fetching ??= refresh()
    if (good) return Promise.resolve(good.document)
    return (
      fetching?.then(({ document }) => document) ??
      Promise.reject(failure ?? new GatewayError('internal', 'no document'))
    )
  }

  function refresh(): Promise<FetchedDocument> {
    const attempt = fetchDocument(targetName, url, context, good).then(
      (fetchedNow) => {
        if (good === undefined) logSkipped(targetName, fetchedNow.document, log)
        good = fetchedNow
        nextAt = clock.monotonic() + freshMs
        return fetchedNow
      },
      (error: unknown) => {
        failure = asGatewayError(error)
        nextAt = clock.monotonic() + retryMs
        log.warn({ target: targetName, reason: failure.message }, 'OpenAPI document fetch failed')
        throw failure
      },
    )
    const done = attempt.finally(() => {
      fetching = undefined
    })
    // Callers receive the failure; an unhandled rejection of a background refresh must not end the process.
    done.catch(() => {})
    return done
  }
}

type FetchedDocument = { digest: string; document: ApiDocument }

async function fetchDocument(
  targetName: string,
  url: string,
  context: SourceContext,
  former: FetchedDocument | undefined,
): Promise<FetchedDocument> {
  const { origin, pathname, search } = new URL(url)
  const reply = await context.send({
    origin,
    path: pathname + search,
    method: 'GET',
    headers: { accept: 'application/json, application/yaml, */*;q=0.5', 'accept-encoding': 'identity' },
    body: undefined,
    firstByteTimeoutMs: fetchTimeoutMs,
    idleTimeoutMs: fetchTimeoutMs,
  })
  const bytes = await readAll(reply.body, maxDocumentBytes, 'upstream_too_large')
  if (reply.status !== 200) throw unusable(targetName, `its server returned status ${reply.status}`)
  // An unchanged document is not parsed again, since that is slow for large documents.
  const digest = createHash('sha256').update(bytes).digest('hex')
  if (former?.digest === digest) return former
  const read = await readFetchedDocument(bytes, context)
  if (read.kind === 'mistakes') throw unusable(targetName, formatProblems(read))
  return { digest, document: read.document }
}

function unusable(targetName: string, reason: string): GatewayError {
  return new GatewayError(
    'upstream_invalid',
    `the OpenAPI document of target "${targetName}" cannot be used: ${reason}`,
  )
}
