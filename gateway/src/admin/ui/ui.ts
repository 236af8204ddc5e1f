import { parseRequestTarget } from '../../lib/request-target.ts'
import { isSource } from '../../net/http/body.ts'
import { firstHeader, type Headers } from '../../net/http/headers.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { RandomBytes } from '../../policies/api-key/new-key.ts'
import type { ApiRequest } from '../../resources/api/request.ts'
import type { Log } from '../../telemetry/log.ts'
import type { ApiHandler } from '../admin.ts'
import { type Asset, type AssetTable, type Coding, noncePlaceholder, readAssets } from './assets.ts'
import { missingPage } from './missing-page.ts'
import { pageHeaders, resourceHeaders } from './security-headers.ts'

export type ConsoleOptions = {
  /** Folder of the built console. */
  readonly folder: URL
  /** Source of the nonces. */
  readonly randomBytes: RandomBytes
  readonly log: Log
  /** Handles requests for other paths. */
  readonly next: ApiHandler
}

const base = '/ui'
const nonceBytes = 16

/**
 * Creates the handler of the console: its files under `/ui`, its page under every other path there (deep
 * links), and a redirect from `/`. Requests are not authenticated here: the caller authorizes the client.
 *
 * The files are read at the first request and then served from memory: no request reaches the file system.
 */
export function createConsole({ folder, randomBytes, log, next }: ConsoleOptions): ApiHandler {
  let reading: Promise<AssetTable | undefined> | undefined

  async function assets(): Promise<AssetTable | undefined> {
    reading ??= readAssets(folder)
    try {
      const table = await reading
      // The console may be built while the gateway runs.
      if (table === undefined) reading = undefined
      return table
    } catch (error) {
      reading = undefined
      log.error({ err: error }, 'files of the console not readable')
      return undefined
    }
  }

  return async (request) => {
    const target = parseRequestTarget(request.target)
    if (target === undefined || !isConsolePath(target.path)) return await next(request)
    if (isSource(request.body)) request.body.cancel()
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return text(405, 'the console accepts GET and HEAD', { allow: 'GET, HEAD' })
    const { path, query, trailingSlash } = target
    if (path === '/' || (path === base && !trailingSlash)) return redirect(`${base}/${query}`)
    const table = await assets()
    const nonce = Buffer.from(randomBytes(nonceBytes)).toString('base64')
    if (table === undefined) return html(503, missingPage, nonce)
    const asset = table.files.get(path.slice(base.length + 1))
    if (asset !== undefined) return assetReply(asset, request)
    if (!isPagePath(path, request)) return text(404, 'the console has no such file')
    return html(200, table.page.replaceAll(noncePlaceholder, nonce), nonce)
  }
}

function isConsolePath(path: string): boolean {
  return path === '/' || path === base || path.startsWith(`${base}/`)
}

/** Ids in deep links may contain dots. Only browsers that open a page accept HTML. */
function isPagePath(path: string, { headers }: ApiRequest): boolean {
  if (`${path}/`.startsWith(`${base}/assets/`)) return false
  const hasExtension = path.slice(path.lastIndexOf('/')).includes('.')
  return !hasExtension || (firstHeader(headers, 'accept') ?? '').includes('text/html')
}

function assetReply(asset: Asset, { headers }: ApiRequest): Reply {
  const coding = preferredCoding(asset, firstHeader(headers, 'accept-encoding') ?? '')
  const etag = coding === 'identity' ? `"${asset.digest}"` : `"${asset.digest}-${coding}"`
  const fields: Headers = {
    ...resourceHeaders,
    'content-type': asset.type,
    'cache-control': asset.isImmutable ? 'private, max-age=31536000, immutable' : 'no-cache',
    etag,
    vary: 'accept-encoding',
  }
  if (matchesTag(firstHeader(headers, 'if-none-match'), etag))
    return { status: 304, headers: fields, body: undefined }
  if (coding !== 'identity') fields['content-encoding'] = coding
  return { status: 200, headers: fields, body: asset.bodies[coding] ?? asset.bodies.identity }
}

const codings: readonly Coding[] = ['br', 'gzip']

function preferredCoding({ bodies }: Asset, accepted: string): Coding {
  return codings.find((coding) => bodies[coding] !== undefined && accepts(accepted, coding)) ?? 'identity'
}

/** RFC 9110 section 12.5.3. A weight of zero excludes a coding. */
function accepts(accepted: string, coding: string): boolean {
  return accepted.split(',').some((entry) => {
    const [name = '', ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase())
    return name === coding && !parameters.some((parameter) => /^q=0(?:\.0{0,3})?$/.test(parameter))
  })
}

/** RFC 9110 section 13.1.2: the comparison is weak, because intermediaries may weaken tags. */
function matchesTag(sent: string | undefined, etag: string): boolean {
  if (sent === undefined) return false
  return sent.trim() === '*' || sent.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag)
}

function html(status: number, page: string, nonce: string): Reply {
  return { status, headers: pageHeaders(nonce), body: Buffer.from(page) }
}

function text(status: number, message: string, headers: Headers = {}): Reply {
  return {
    status,
    headers: {
      ...resourceHeaders,
      'content-type': 'text/plain; charset=utf-8',
      'cache-control': 'no-store',
      ...headers,
    },
    body: Buffer.from(`${message}\n`),
  }
}

function redirect(location: string): Reply {
  return {
    status: 308,
    headers: { ...resourceHeaders, location, 'cache-control': 'no-store' },
    body: undefined,
  }
}
