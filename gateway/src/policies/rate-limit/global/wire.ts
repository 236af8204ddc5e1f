import { type FieldValue, readMessage } from '../../../lib/protobuf/message-reader.ts'
import { createMessageWriter, type MessageWriter } from '../../../lib/protobuf/message-writer.ts'

/*
 * The used fields of the messages of `envoy.service.ratelimit.v3.RateLimitService`:
 *
 * RateLimitRequest domain = 1, descriptors = 2, hits_addend = 3 RateLimitDescriptor entries = 1 (key = 1,
 * value = 2), limit = 2 (requests_per_unit = 1, unit = 2),
 *                        hits_addend = 3 (google.protobuf.UInt64Value)
 * RateLimitResponse overall_code = 1, statuses = 2, response_headers_to_add = 3, request_headers_to_add = 4,
 * raw_body = 5 DescriptorStatus code = 1, current_limit = 2 (requests_per_unit = 1, unit = 2),
 * limit_remaining = 3,
 *                        duration_until_reset = 4 (google.protobuf.Duration)
 * HeaderValue key = 1, value = 2, raw_value = 3
 */

/** Path of the method that checks and counts requests. */
export const shouldRateLimit = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
/** Paths of Limitador's methods with the same messages: one only checks, the other only counts. */
export const checkRateLimit = '/kuadrant.service.ratelimit.v1.RateLimitService/CheckRateLimit'
export const reportUsage = '/kuadrant.service.ratelimit.v1.RateLimitService/Report'

/** Limit units; the index is the number on the wire. */
export const limitUnits = ['unknown', 'second', 'minute', 'hour', 'day', 'month', 'year', 'week'] as const
export type LimitUnit = (typeof limitUnits)[number]

/** Rate limit descriptor of a request: entries of keys and values. */
export type Descriptor = {
  readonly entries: readonly (readonly [key: string, value: string])[]
  /** Overrides the limit of the service. */
  readonly limit: { readonly requestsPerUnit: number; readonly unit: LimitUnit } | undefined
}

/** A descriptor and its hit count; 0 checks without counting. */
export type Hit = { readonly descriptor: Descriptor; readonly hits: number }

/** Response of the service, with header names and values as received. */
export type LimitResponse = {
  readonly code: 'unknown' | 'ok' | 'overLimit'
  readonly statuses: readonly DescriptorStatus[]
  readonly responseHeaders: readonly HeaderField[]
  readonly requestHeaders: readonly HeaderField[]
  readonly body: Uint8Array | undefined
}

export type HeaderField = { readonly name: string; readonly value: string }

export type DescriptorStatus = {
  readonly code: LimitResponse['code']
  /** Undefined where no limit is configured for the descriptor. */
  readonly limit: { readonly requestsPerUnit: number; readonly unit: LimitUnit } | undefined
  readonly remaining: number
  /** Rounded up. */
  readonly resetSeconds: number | undefined
}

const writer = createMessageWriter()

/** Encodes a request. `total` is the hit count for services without support for hit counts per descriptor. */
export function encodeRequest(domain: string, hits: readonly Hit[], total: number): Uint8Array {
  writer.start()
  writer.text(1, domain)
  for (const hit of hits) {
    writer.begin(2)
    writeDescriptor(writer, hit)
    writer.end()
  }
  writer.integer(3, Math.min(total, maxUint32))
  return writer.finish()
}

export const maxUint32 = 2 ** 32 - 1

function writeDescriptor(writer: MessageWriter, { descriptor, hits }: Hit): void {
  for (const [key, value] of descriptor.entries) {
    writer.begin(1)
    writer.text(1, key)
    writer.text(2, value)
    writer.end()
  }
  const { limit } = descriptor
  if (limit !== undefined) {
    writer.begin(2)
    writer.integer(1, limit.requestsPerUnit)
    writer.integer(2, limitUnits.indexOf(limit.unit))
    writer.end()
  }
  // Written even if it is 0: without the field, the service counts 1.
  writer.begin(3)
  writer.integer(1, hits)
  writer.end()
}

/** Decodes a response. Throws if the bytes are not a valid message. */
export function decodeResponse(bytes: Uint8Array): LimitResponse {
  let code: LimitResponse['code'] = 'unknown'
  let body: Uint8Array | undefined
  const statuses: DescriptorStatus[] = []
  const responseHeaders: HeaderField[] = []
  const requestHeaders: HeaderField[] = []
  readMessage(bytes, (field, value) => {
    if (field === 1) code = codeOf(value.integer())
    else if (field === 2) statuses.push(readStatus(value))
    else if (field === 3) responseHeaders.push(readHeader(value))
    else if (field === 4) requestHeaders.push(readHeader(value))
    else if (field === 5) body = value.bytes()
  })
  return { code, statuses, responseHeaders, requestHeaders, body: body?.length === 0 ? undefined : body }
}

function readStatus(message: FieldValue): DescriptorStatus {
  let code: LimitResponse['code'] = 'unknown'
  let limit: DescriptorStatus['limit']
  let remaining = 0
  let resetSeconds: number | undefined
  readMessage(message.bytes(), (field, value) => {
    if (field === 1) code = codeOf(value.integer())
    else if (field === 2) limit = readLimit(value)
    else if (field === 3) remaining = value.integer()
    else if (field === 4) resetSeconds = readDuration(value)
  })
  return { code, limit, remaining, resetSeconds }
}

function readLimit(message: FieldValue): NonNullable<DescriptorStatus['limit']> {
  let requestsPerUnit = 0
  let unit: LimitUnit = 'unknown'
  readMessage(message.bytes(), (field, value) => {
    if (field === 1) requestsPerUnit = value.integer()
    else if (field === 2) unit = limitUnits[value.integer()] ?? 'unknown'
  })
  return { requestsPerUnit, unit }
}

function readDuration(message: FieldValue): number {
  let seconds = 0
  let nanos = 0
  readMessage(message.bytes(), (field, value) => {
    if (field === 1) seconds = value.integer()
    else if (field === 2) nanos = value.integer()
  })
  return Math.max(0, seconds + (nanos > 0 ? 1 : 0))
}

function readHeader(message: FieldValue): HeaderField {
  let name = ''
  let value = ''
  readMessage(message.bytes(), (field, content) => {
    if (field === 1) name = content.text()
    else if (field === 2) value = content.text()
    else if (field === 3) value = Buffer.from(content.bytes()).toString('latin1') || value
  })
  return { name, value }
}

function codeOf(number: number): LimitResponse['code'] {
  if (number === 1) return 'ok'
  return number === 2 ? 'overLimit' : 'unknown'
}
