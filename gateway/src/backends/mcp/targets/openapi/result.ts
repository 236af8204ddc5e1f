import { isJsonObject, type JsonObject } from '../../../../lib/json/json.ts'
import { firstHeader, type Headers } from '../../../../net/http/headers.ts'

/** Complete API response. */
export type ApiAnswer = { status: number; headers: Headers; body: Buffer }

/**
 * Tool result as JSON text. A JSON object is the structured content, other JSON becomes `{data}`, text
 * becomes `{code, message}`; images, audio and other bytes become content of their type. Status 5xx and
 * redirects, which are not followed, are errors; 4xx is a regular result.
 */
export function resultText({ status, headers, body }: ApiAnswer): string {
  const isError = status >= 500 || (status >= 300 && status < 400)
  const mediaType = (firstHeader(headers, 'content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  const binary = isError ? undefined : binaryContent(mediaType, body)
  if (binary) return JSON.stringify({ content: [binary] })
  const text = decode(body)
  const structured = structuredText(status, text)
  const shown = isError ? `the API answered status ${status}${text === '' ? '' : `: ${text}`}` : text
  // The structured content is the unmodified text, so that no number is rounded.
  return (
    `{"content":[{"type":"text","text":${JSON.stringify(shown)}}],"structuredContent":${structured}` +
    `${isError ? ',"isError":true' : ''}}`
  )
}

/** Error result of a tool call, readable by a model. */
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
