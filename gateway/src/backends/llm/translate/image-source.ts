import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'

/** Image formats that the messages API accepts as base64. */
const imageTypes: ReadonlySet<string> = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])

/** `data:` URL to media type and base64 text; undefined for every other URL. RFC 2397. */
export function parseDataUrl(url: string): { mediaType: string; base64: string } | undefined {
  if (!/^data:/i.test(url)) return undefined
  const comma = url.indexOf(',')
  if (comma === -1) return undefined
  const [mediaType = '', ...parameters] = url.slice('data:'.length, comma).toLowerCase().split(';')
  return parameters.includes('base64') ? { mediaType, base64: url.slice(comma + 1) } : undefined
}

/** The messages API's source for an image URL, or the problem of the URL. */
export function imageSource(
  url: string,
): { kind: 'source'; source: JsonObject } | { kind: 'problem'; message: string } {
  if (/^https?:\/\//i.test(url)) return { kind: 'source', source: { type: 'url', url } }
  const inline = parseDataUrl(url)
  if (inline === undefined)
    return { kind: 'problem', message: 'must be an http(s) URL or a base64 data: URL' }
  const mediaType = inline.mediaType === 'image/jpg' ? 'image/jpeg' : inline.mediaType
  if (!imageTypes.has(mediaType)) {
    return {
      kind: 'problem',
      message: `image type must be one of ${[...imageTypes].join(', ')}, got "${mediaType}"`,
    }
  }
  return { kind: 'source', source: { type: 'base64', media_type: mediaType, data: inline.base64 } }
}

/**
 * The URL of a messages API source (`base64` or `url`); undefined for sources that only this API can resolve.
 */
export function sourceUrl(source: JsonValue | undefined): string | undefined {
  if (!isJsonObject(source)) return undefined
  const { type, url, media_type: mediaType, data } = source
  if (type === 'url' && typeof url === 'string') return url
  if (type !== 'base64' || typeof mediaType !== 'string' || typeof data !== 'string') return undefined
  return `data:${mediaType};base64,${data}`
}
