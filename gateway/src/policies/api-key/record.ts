import { hash } from 'node:crypto'
import { isJsonObject, type JsonObject } from '../../lib/json/json.ts'
import type { ModelAccess } from '../../pipeline/exchange.ts'
import { exactlyOne, type Infer, jsonObject, list, name, optional, secret, string } from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { checkAllowedModels, compileAllowedModels } from './allowed-models.ts'

/** Error text of an invalid key record (specification, "Errors"). */
const recordMismatch = 'data did not match any variant of untagged enum LocalAPIKey'

/** One virtual key (specification, "`llm.apiKey` value"). */
export const apiKeyRecordSchema = exactlyOne(
  {
    key: secret({ doc: 'Plain text key.', example: 'tg-4kZ0mCw2' }),
    keyHash: string({
      doc: 'SHA-256 of the key, in place of the plain text: `sha256:` and 64 hexadecimal digits.',
      example: `sha256:${'0'.repeat(64)}`,
    }),
  },
  {
    metadata: optional(
      jsonObject({
        doc: 'Metadata of the key, available in expressions as `apiKey.*`. `group` is also a label of token metrics.',
        example: { name: 'build server', user: 'ada', group: 'platform' },
      }),
    ),
    allowedModels: optional(
      list(name({ doc: 'Model name, `*`, `prefix*` or `*suffix`.' }), {
        doc: 'Models that the key may use. Default: all. Empty list: none.',
        example: ['gpt-5-mini', 'claude-*'],
      }),
    ),
  },
  { doc: 'Virtual key, as plain text or hash.', mismatch: recordMismatch },
)

export type ApiKeyRecord = Infer<typeof apiKeyRecordSchema>

/** Index entry of a virtual key, without the key itself. */
export type ApiKeyEntry = {
  /** SHA-256 of the key, one character per byte. */
  readonly digest: string
  /** Metadata with `id`: the variable `apiKey`. */
  readonly facts: JsonObject
  readonly group: string
  /** Undefined permits all models. */
  readonly models: ModelAccess | undefined
}

const sendable = /^[!-~](?:[ -~]*[!-~])?$/
const keyHashForm = /^sha256:([0-9a-f]{64})$/i

/**
 * SHA-256 of a key, one character per byte: the shortest form for a Map key. The duration of a lookup by
 * digest does not depend on the correct part of the key.
 */
export function digestOf(key: string): string {
  return hash('sha256', key, 'latin1')
}

/** Returns the digest of a record, or undefined if its `keyHash` is malformed. */
export function recordDigest(record: ApiKeyRecord): string | undefined {
  if (record.key !== undefined) return digestOf(record.key)
  const digits = keyHashForm.exec(record.keyHash)?.[1]
  return digits === undefined ? undefined : Buffer.from(digits, 'hex').toString('latin1')
}

/** Returns the entry of a valid record (`checkRecord`). */
export function apiKeyEntry(record: ApiKeyRecord): ApiKeyEntry {
  const digest = recordDigest(record)
  if (digest === undefined) throw new Error('virtual key record with a malformed keyHash')
  const { metadata, allowedModels } = record
  const hasId = isJsonObject(metadata) && typeof metadata['id'] === 'string' && metadata['id'] !== ''
  const group = metadata?.['group']
  return {
    digest,
    // Without a copy, because there may be 100,000.
    facts: Object.freeze(hasId ? metadata : { ...metadata, id: derivedId(digest) }),
    group: typeof group === 'string' ? group : '',
    models: allowedModels && { allows: compileAllowedModels(allowedModels), patterns: allowedModels },
  }
}

/**
 * Derives a stable UUID (version 8, RFC 9562) of a key. It uses a separate digest, so that the id in a log is
 * not a prefix of the `keyHash`.
 */
function derivedId(digest: string): string {
  const hex = hash('sha256', Buffer.from(`tollgate virtual key id\n${digest}`, 'latin1'), 'hex')
  const variant = '89ab'[Number.parseInt(hex.slice(16, 17), 16) % 4]
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-')
}

/** Reports errors of a record beyond the schema. Messages never contain the key. */
export function checkRecord(record: ApiKeyRecord, report: ReportIssue) {
  if (record.key === '') report(['key'], `${recordMismatch}: key must not be empty`)
  else if (record.key !== undefined && !sendable.test(record.key)) {
    report(
      ['key'],
      `${recordMismatch}: key must be printable ASCII without leading or trailing spaces, as in a header`,
    )
  }
  if (record.keyHash !== undefined && recordDigest(record) === undefined) {
    report(['keyHash'], `${recordMismatch}: keyHash must be "sha256:" followed by 64 hexadecimal digits`)
  }
  if (record.allowedModels === undefined) return
  checkAllowedModels(record.allowedModels, (path, message) => report(['allowedModels', ...path], message))
}
