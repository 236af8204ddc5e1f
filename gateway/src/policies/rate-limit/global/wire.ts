import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'

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

/** Encodes a request. `total` is the hit count for services without support for hit counts per descriptor. */
export function encodeRequest(domain: string, hits: readonly Hit[], total: number): Uint8Array {
  const writer = new BinaryWriter()
  if (domain !== '') writer.uint32(10).string(domain)
  for (const hit of hits) {
    writer.uint32(18).fork()
    writeDescriptor(writer, hit)
    writer.join()
  }
  if (total > 0) writer.uint32(24).uint32(Math.min(total, maxUint32))
  return writer.finish()
}

export const maxUint32 = 2 ** 32 - 1

function writeDescriptor(writer: BinaryWriter, { descriptor, hits }: Hit): void {
  for (const [key, value] of descriptor.entries) {
    writer.uint32(10).fork().uint32(10).string(key).uint32(18).string(value).join()
  }
  const { limit } = descriptor
  if (limit !== undefined) {
    writer.uint32(18).fork().uint32(8).uint32(limit.requestsPerUnit)
    writer.uint32(16).int32(limitUnits.indexOf(limit.unit)).join()
  }
  // Written even if it is 0: without the field, the service counts 1.
  writer.uint32(26).fork()
  if (hits > 0) writer.uint32(8).uint64(hits)
  writer.join()
}

/** Decodes a response. Throws if the bytes are not a valid message. */
export function decodeResponse(bytes: Uint8Array): LimitResponse {
  const reader = new BinaryReader(bytes)
  let code: LimitResponse['code'] = 'unknown'
  let body: Uint8Array | undefined
  const statuses: DescriptorStatus[] = []
  const responseHeaders: HeaderField[] = []
  const requestHeaders: HeaderField[] = []
  while (reader.pos < reader.len) {
    const [field, wire] = reader.tag()
    if (field === 1) code = codeOf(varint(reader, wire))
    else if (field === 2) statuses.push(readMessage(reader, wire, readStatus))
    else if (field === 3) responseHeaders.push(readMessage(reader, wire, readHeader))
    else if (field === 4) requestHeaders.push(readMessage(reader, wire, readHeader))
    else if (field === 5) body = readBytes(reader, wire)
    else reader.skip(wire, field)
  }
  return { code, statuses, responseHeaders, requestHeaders, body: body?.length === 0 ? undefined : body }
}

function readStatus(reader: BinaryReader): DescriptorStatus {
  let code: LimitResponse['code'] = 'unknown'
  let limit: DescriptorStatus['limit']
  let remaining = 0
  let resetSeconds: number | undefined
  while (reader.pos < reader.len) {
    const [field, wire] = reader.tag()
    if (field === 1) code = codeOf(varint(reader, wire))
    else if (field === 2) limit = readMessage(reader, wire, readLimit)
    else if (field === 3) remaining = varint(reader, wire)
    else if (field === 4) resetSeconds = readMessage(reader, wire, readDuration)
    else reader.skip(wire, field)
  }
  return { code, limit, remaining, resetSeconds }
}

function readLimit(reader: BinaryReader): NonNullable<DescriptorStatus['limit']> {
  let requestsPerUnit = 0
  let unit: LimitUnit = 'unknown'
  while (reader.pos < reader.len) {
    const [field, wire] = reader.tag()
    if (field === 1) requestsPerUnit = varint(reader, wire)
    else if (field === 2) unit = limitUnits[varint(reader, wire)] ?? 'unknown'
    else reader.skip(wire, field)
  }
  return { requestsPerUnit, unit }
}

function readDuration(reader: BinaryReader): number {
  let seconds = 0
  let nanos = 0
  while (reader.pos < reader.len) {
    const [field, wire] = reader.tag()
    if (field === 1) seconds = signedVarint(reader, wire)
    else if (field === 2) nanos = signedVarint(reader, wire)
    else reader.skip(wire, field)
  }
  return Math.max(0, seconds + (nanos > 0 ? 1 : 0))
}

function readHeader(reader: BinaryReader): HeaderField {
  let name = ''
  let value = ''
  while (reader.pos < reader.len) {
    const [field, wire] = reader.tag()
    if (field === 1) name = readText(reader, wire)
    else if (field === 2) value = readText(reader, wire)
    else if (field === 3) value = Buffer.from(readBytes(reader, wire)).toString('latin1') || value
    else reader.skip(wire, field)
  }
  return { name, value }
}

function codeOf(number: number): LimitResponse['code'] {
  if (number === 1) return 'ok'
  return number === 2 ? 'overLimit' : 'unknown'
}

/**
 * Rejects a field of unexpected wire type, which indicates another protocol: the library itself reads any
 * type.
 */
function expectWire(wire: WireType, expected: WireType): void {
  if (wire !== expected) throw new RangeError('a field has an unexpected wire type')
}

function varint(reader: BinaryReader, wire: WireType): number {
  expectWire(wire, WireType.Varint)
  return reader.uint32()
}

function signedVarint(reader: BinaryReader, wire: WireType): number {
  expectWire(wire, WireType.Varint)
  return Number(reader.int64())
}

function readBytes(reader: BinaryReader, wire: WireType): Uint8Array {
  expectWire(wire, WireType.LengthDelimited)
  return reader.bytes()
}

function readText(reader: BinaryReader, wire: WireType): string {
  expectWire(wire, WireType.LengthDelimited)
  return reader.string()
}

function readMessage<T>(reader: BinaryReader, wire: WireType, read: (reader: BinaryReader) => T): T {
  return read(new BinaryReader(readBytes(reader, wire)))
}
