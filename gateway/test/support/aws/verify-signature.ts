import { createHash, createHmac } from 'node:crypto'

/**
 * Verification of Signature Version 4 for servers in tests. It is written from AWS's description alone, and
 * shares no code with the gateway.
 */
export type ReceivedRequest = {
  method: string
  /** With the query. */
  path: string
  headers: Readonly<Record<string, string | string[] | undefined>>
  body: string | Uint8Array
}

export type Verification =
  | { kind: 'valid'; accessKeyId: string; region: string; service: string }
  | { kind: 'invalid'; code: string; message: string }

const form =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/

/** `secretOf` returns the secret of a key id. */
export function verifySignature(
  { method, path, headers, body }: ReceivedRequest,
  secretOf: (accessKeyId: string) => string | undefined,
): Verification {
  const parts = form.exec(String(headers['authorization'] ?? ''))
  if (parts === null) return invalid('MissingAuthenticationTokenException', 'Missing Authentication Token')
  const [, id = '', day = '', region = '', service = '', names = '', signature] = parts
  const secret = secretOf(id)
  if (secret === undefined)
    return invalid('UnrecognizedClientException', 'The security token included in the request is invalid.')
  const signed = names.split(';')
  const unsigned = Object.keys(headers).find((name) => name.startsWith('x-amz') && !signed.includes(name))
  if (!signed.includes('host') || unsigned !== undefined)
    return invalid('InvalidSignatureException', `Headers must be signed: ${unsigned ?? 'host'}`)
  const [rawPath = '', rawQuery = ''] = path.split('?')
  const segments = rawPath.split('/').map((segment) => encode(segment))
  const query = rawQuery
    .split('&')
    .filter((part) => part !== '')
    .map((part) => {
      const [name = '', value = ''] = part.split('=').map((text) => encode(decodeURIComponent(text)))
      return `${name}=${value}`
    })
    .sort()
    .join('&')
  const fields = signed
    .map(
      (name) =>
        `${name}:${String(headers[name] ?? '')
          .trim()
          .replace(/ +/g, ' ')}\n`,
    )
    .join('')
  const request = [
    method,
    segments.join('/').replace(/\/{2,}/g, '/'),
    query,
    fields,
    names,
    createHash('sha256').update(body).digest('hex'),
  ].join('\n')
  const date = String(headers['x-amz-date'] ?? '')
  const text = `AWS4-HMAC-SHA256\n${date}\n${day}/${region}/${service}/aws4_request\n${createHash('sha256').update(request).digest('hex')}`
  const key = [day, region, service, 'aws4_request'].reduce<string | Buffer>(
    (secretKey, part) => createHmac('sha256', secretKey).update(part).digest(),
    `AWS4${secret}`,
  )
  if (!date.startsWith(day) || createHmac('sha256', key).update(text).digest('hex') !== signature)
    return invalid(
      'InvalidSignatureException',
      'The request signature we calculated does not match the signature you provided.',
    )
  return { kind: 'valid', accessKeyId: id, region, service }
}

function invalid(code: string, message: string): Verification {
  return { kind: 'invalid', code, message }
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}
