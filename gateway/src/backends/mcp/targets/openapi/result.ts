import { isJsonObject, type JsonObject } from '../../../../lib/json/json.ts'
import { firstHeader, type Headers } from '../../../../net/http/headers.ts'

/** A complete answer of the API. */
export type ApiAnswer = { status: number; headers: Headers; body: Buffer }

/**
 * The result of a tool call as JSON text. A JSON object is the structured content, other JSON is wrapped as `{data}`, text
 * as `{code, message}`; images, sound and other bytes become content of their kind. An answer of 5xx, and a redirect,
 * which is not followed, is an error; one of 4xx is what the API has to say.
 */
export function resultText({ status, headers, body }: ApiAnswer): string {
  const isError = status >= 500 || (status >= 300 && status < 400)
  const mediaType = (firstHeader(headers, 'content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  const binary = isError ? undefined : binaryContent(mediaType, body)
  if (binary) return JSON.stringify({ content: [binary] })
  const text = decode(body)
  const structured = structuredText(status, text)
  const shown = isError ? `the API answered status ${status}${text === '' ? '' : `: ${text}`}` : text
  // The structured content is the answer's own text, so that no number in it is rounded.
  return (
    `{"content":[{"type":"text","text":${JSON.stringify(shown)}}],"structuredContent":${structured}` +
    `${isError ? ',"isError":true' : ''}}`
  )
}

/** The result of a call that was not made, or whose answer is of no use; a model can read why. */
export function errorResultText(message: string): string {
  return JSON.stringify({ content: [{ type: 'text', text: message }], isError: true })
}

function structuredText(status: number, text: string): string {
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) ? text : `{"data":${text}}`
  } catch {
    return JSON.stringify({ code: status, message: text })
  }
}

function binaryContent(mediaType: string, body: Buffer): JsonObject | undefined {
  if (body.length === 0) return undefined
  if (/^(?:image|audio)\/[a-z0-9.+-]+$/.test(mediaType) && mediaType !== 'image/svg+xml') {
    const type = mediaType.startsWith('image/') ? 'image' : 'audio'
    return { type, data: body.toString('base64'), mimeType: mediaType }
  }
  if (!/^(?:application\/(?:octet-stream|pdf|zip|gzip)|video\/[a-z0-9.+-]+)$/.test(mediaType))
    return undefined
  return {
    type: 'resource',
    resource: { uri: 'openapi:answer', mimeType: mediaType, blob: body.toString('base64') },
  }
}

function decode(body: Buffer): string {
  const text = body.toString('utf8')
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
}
