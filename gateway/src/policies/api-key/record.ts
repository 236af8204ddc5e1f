import { hash } from 'node:crypto'
import { parseTimestamp } from '../../lib/timestamp.ts'
import { checkKeyLimits, keyLimitsSchema } from '../../pipeline/keys/key-limits.ts'
import { checkKeyBudgets, keyBudgetsSchema } from '../../schema/budget.ts'
import {
  boolean,
  exactlyOne,
  type Infer,
  jsonObject,
  list,
  name,
  object,
  optional,
  secret,
  string,
} from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { checkPatterns } from './name-patterns.ts'

/** Error text of an invalid key record (specification, "Errors"). */
const recordMismatch = 'data did not match any variant of untagged enum LocalAPIKey'

const keyHashSchema = string({
  doc: 'SHA-256 of the key, in place of the plain text: `sha256:` and 64 hexadecimal digits.',
  example: `sha256:${'0'.repeat(64)}`,
})

/** Maximum number of earlier keys of a record that are valid at the same time. */
export const maxPreviousKeys = 8

/** One virtual key (specification, "`llm.apiKey` value"). */
export const apiKeyRecordSchema = exactlyOne(
  {
    key: secret({ doc: 'Plain text key.', example: 'tg-4kZ0mCw2' }),
    keyHash: keyHashSchema,
  },
  {
    metadata: optional(
      jsonObject({
        doc: 'Metadata of the key, available in expressions as `apiKey.*`. `group` is also a label of token metrics.',
        example: { name: 'build server', user: 'ada', group: 'platform' },
      }),
    ),
    expiresAt: optional(
      string({
        doc: 'End of the validity (RFC 3339). From then on, requests with the key are 401.',
        default: 'never',
        example: '2027-01-31T00:00:00Z',
      }),
    ),
    disabled: optional(boolean({ doc: 'Refuses requests with the key with 401.', default: false })),
    allowedModels: optional(
      list(name({ doc: 'Model name, `*`, `prefix*` or `*suffix`.' }), {
        doc: 'Models that the key may use. Default: all. Empty list: none.',
        example: ['gpt-5-mini', 'claude-*'],
      }),
    ),
    allowedTargets: optional(
      list(name({ doc: 'Target name, `*`, `prefix*` or `*suffix`.' }), {
        doc: 'MCP targets that the key may use. The others are hidden from lists, and refused in calls. Default: all. Empty list: none.',
        example: ['search', 'docs-*'],
      }),
    ),
    limits: optional(keyLimitsSchema),
    budgets: optional(keyBudgetsSchema),
    previousKeys: optional(
      list(
        object(
          {
            keyHash: keyHashSchema,
            expiresAt: string({
              doc: 'End of the validity of the earlier key (RFC 3339).',
              example: '2027-01-31T00:00:00Z',
            }),
          },
          { doc: 'Earlier key.' },
        ),
        {
          doc: `Earlier keys of this record, each valid until its own end; at most ${maxPreviousKeys}. Written by a rotation.`,
          advanced: true,
        },
      ),
    ),
  },
  { doc: 'Virtual key, as plain text or hash.', mismatch: recordMismatch },
)

export type ApiKeyRecord = Infer<typeof apiKeyRecordSchema>
export type PreviousKey = NonNullable<ApiKeyRecord['previousKeys']>[number]

const sendable = /^[!-~](?:[ -~]*[!-~])?$/
const keyHashForm = /^sha256:([0-9a-f]{64})$/i

/**
 * SHA-256 of a key, one character per byte: the shortest form for a Map key. The duration of a lookup by
 * digest does not depend on the correct part of the key.
 */
export function digestOf(key: string): string {
  return hash('sha256', key, 'latin1')
}

/** The `keyHash` of a digest. */
export function keyHashOf(digest: string): string {
  return `sha256:${Buffer.from(digest, 'latin1').toString('hex')}`
}

/** Digest of a `keyHash`; undefined if it is malformed. */
export function digestOfHash(keyHash: string): string | undefined {
  const digits = keyHashForm.exec(keyHash)?.[1]
  return digits === undefined ? undefined : Buffer.from(digits, 'hex').toString('latin1')
}

/** Returns the digest of the current key of a record, or undefined if its `keyHash` is malformed. */
export function recordDigest(record: ApiKeyRecord): string | undefined {
  return record.key === undefined ? digestOfHash(record.keyHash) : digestOf(record.key)
}

/** Digests of all keys of a record: the current one, then earlier ones. Malformed hashes are omitted. */
export function allDigests(record: ApiKeyRecord): readonly string[] {
  const digest = recordDigest(record)
  const current = digest === undefined ? [] : [digest]
  const { previousKeys } = record
  if (previousKeys === undefined) return current
  return current.concat(previousKeys.flatMap(({ keyHash }) => digestOfHash(keyHash) ?? []))
}

/** Reports errors of a record beyond the schema. Messages never contain the key. */
export function checkRecord(record: ApiKeyRecord, report: ReportIssue) {
  const { key, keyHash, expiresAt, allowedModels, allowedTargets, limits, budgets } = record
  const { previousKeys = [] } = record
  if (key === '') report(['key'], `${recordMismatch}: key must not be empty`)
  else if (key !== undefined && !sendable.test(key)) {
    report(
      ['key'],
      `${recordMismatch}: key must be printable ASCII without leading or trailing spaces, as in a header`,
    )
  }
  if (keyHash !== undefined) checkKeyHash(keyHash, (message) => report(['keyHash'], message))
  if (expiresAt !== undefined) checkTime(expiresAt, (message) => report(['expiresAt'], message))
  if (allowedModels !== undefined) {
    checkPatterns(allowedModels, 'model', (path, message) => report(['allowedModels', ...path], message))
  }
  if (allowedTargets !== undefined) {
    checkPatterns(allowedTargets, 'target', (path, message) => report(['allowedTargets', ...path], message))
  }
  if (limits !== undefined) checkKeyLimits(limits, (path, message) => report(['limits', ...path], message))
  if (budgets !== undefined) {
    checkKeyBudgets(budgets, (path, message) => report(['budgets', ...path], message))
  }
  if (previousKeys.length > maxPreviousKeys) {
    report(['previousKeys'], `previousKeys must have at most ${maxPreviousKeys} items`)
  }
  previousKeys.forEach((previous, index) => {
    const place = ['previousKeys', index]
    checkKeyHash(previous.keyHash, (message) => report([...place, 'keyHash'], message))
    checkTime(previous.expiresAt, (message) => report([...place, 'expiresAt'], message))
  })
}

function checkKeyHash(keyHash: string, report: (message: string) => void): void {
  if (digestOfHash(keyHash) !== undefined) return
  report(`${recordMismatch}: keyHash must be "sha256:" followed by 64 hexadecimal digits`)
}

function checkTime(text: string, report: (message: string) => void): void {
  if (parseTimestamp(text) !== undefined) return
  report(`expiresAt must be an RFC 3339 time, such as "2027-01-31T00:00:00Z", got "${text.slice(0, 100)}"`)
}
