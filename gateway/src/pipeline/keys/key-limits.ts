import { hash } from 'node:crypto'
import { type Infer, list } from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { allowanceSchema, unitMs } from './allowance.ts'

/** `limits` of a virtual key. */
export const keyLimitsSchema = list(allowanceSchema({}), {
  doc: 'Limits of this key, counted per key over all routes. A request must pass all of them; token limits apply to requests to LLM providers.',
  example: [{ tokens: 100_000, unit: 'Hours' }],
})

/** A limit of one virtual key, for `policies/rate-limit`. */
export type KeyLimit = {
  readonly keyId: string
  readonly counts: 'requests' | 'tokens'
  /** Base and burst. */
  readonly capacity: number
  /** Units added per interval: the base. */
  readonly refill: number
  readonly intervalMs: number
  /** `requests per minute`; with a number for further limits of the same unit. */
  readonly label: string
  /** Identity of the count: the key and the limit, independent of amounts and list order. */
  readonly bucket: string
}

type KeyLimitsConfig = Infer<typeof keyLimitsSchema>

/** Compiles the limits of a key; undefined if there are none. */
export function compileKeyLimits(
  keyId: string,
  config: KeyLimitsConfig | undefined,
): readonly KeyLimit[] | undefined {
  if (config === undefined || config.length === 0) return undefined
  const sizes = config.map((entry) => {
    const counts = entry.requests === undefined ? ('tokens' as const) : ('requests' as const)
    const refill = entry.requests ?? entry.tokens ?? 0
    return { counts, unit: entry.unit, refill, capacity: refill + (entry.burst ?? 0) }
  })
  return sizes.map((size) => {
    const { counts, unit, refill, capacity } = size
    const alike = sizes.filter((other) => other.counts === counts && other.unit === unit)
    const position = alike.toSorted((one, other) => one.capacity - other.capacity).indexOf(size) + 1
    const words = `${counts} per ${unit.slice(0, -1).toLowerCase()}`
    return {
      keyId,
      counts,
      capacity,
      refill,
      intervalMs: unitMs[unit],
      label: position === 1 ? words : `${words} (${position})`,
      bucket: bucketName(keyId, counts, unit, position),
    }
  })
}

/** Maximum length of `KeyLimit.bucket` in bytes. */
export const longestBucketName = 112

/** Name of a count, of bounded length: a long id is hashed. The JSON text is ASCII or well-formed Unicode. */
function bucketName(keyId: string, ...limit: readonly (string | number)[]): string {
  const name = JSON.stringify([...limit, keyId])
  if (Buffer.byteLength(name) <= longestBucketName) return name
  return JSON.stringify([...limit, `sha256:${hash('sha256', keyId, 'hex').slice(0, 64)}`])
}

/** Returns the key and the unit of a `KeyLimit.bucket`. */
export function readBucketName(name: string): { keyId: string; counts: string } {
  const parts: unknown = JSON.parse(name)
  const [counts, , , keyId] = Array.isArray(parts) ? parts : []
  return { keyId: String(keyId), counts: String(counts) }
}

/** Reports limits beyond the schema: allowances that are too large to count. */
export function checkKeyLimits(config: KeyLimitsConfig, report: ReportIssue): void {
  config.forEach(({ requests, tokens, burst = 0 }, index) => {
    if (!Number.isSafeInteger((requests ?? tokens ?? 0) + burst))
      report([index, 'burst'], 'sum of base and burst is too large')
  })
}
