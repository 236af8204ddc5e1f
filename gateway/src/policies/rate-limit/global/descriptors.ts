import { hash } from 'node:crypto'
import type { CelProgram } from '../../../cel/cel.ts'
import { compileCheckedCel } from '../../../cel/checked.ts'
import { CelEvaluationError } from '../../../cel/failure.ts'
import { clientNetwork } from '../../../lib/address/client-network.ts'
import type { Facts } from '../../../pipeline/exchange.ts'
import { needsBody } from '../../../pipeline/rules.ts'
import { isAddressKey, keyVariables } from '../local-config.ts'
import { costVariables, countsTokens, type DescriptorConfig } from './config.ts'
import { type Descriptor, type LimitUnit, limitUnits, maxUint32 } from './wire.ts'

/** One thing that is counted, compiled. */
export type CompiledDescriptor = {
  readonly counts: 'requests' | 'tokens'
  readonly needsBody: boolean
  /** What the request counts as; undefined where it does not count. */
  describe(facts: Facts): Descriptor | undefined
  /** How much a request counts for as it comes. */
  costOfRequest(facts: Facts): number
  /** How much it counts for once its tokens are known. */
  costOfTokens(facts: Facts, totalTokens: number): number
}

export function compileDescriptor(config: DescriptorConfig): CompiledDescriptor {
  const entries = config.entries.map(({ key, value }) => ({
    key,
    value: compileCheckedCel(value, keyVariables),
    byNetwork: isAddressKey(value),
  }))
  const override = config.limitOverride && compileCheckedCel(config.limitOverride, keyVariables)
  const cost = config.cost === undefined ? undefined : compileCheckedCel(config.cost, costVariables)
  const counts = countsTokens(config) ? 'tokens' : 'requests'
  const early = [...entries.map(({ value }) => value), override, counts === 'requests' ? cost : undefined]
  return {
    counts,
    needsBody: early.some((program) => program && needsBody(program)),
    describe(facts) {
      const pairs: [string, string][] = []
      for (const { key, value, byNetwork } of entries) {
        const text = textOf(value, facts)
        if (text === undefined) return undefined
        pairs.push([key, byNetwork ? clientNetwork(text) : text])
      }
      return { entries: pairs, limit: override ? limitOf(override, facts) : undefined }
    },
    costOfRequest: (facts) => (cost && numberOf(cost, facts)) ?? 1,
    costOfTokens(facts, totalTokens) {
      if (cost === undefined) return totalTokens
      return numberOf(cost, { ...facts, llm: { ...facts.llm, ...facts.usage } }) ?? totalTokens
    },
  }
}

/** Longer values are sent as their hash: expressions may name whole bodies. So is what looks like one, to stay apart. */
const longestValue = 1024
const hashMark = 'sha256:'

function textOf(program: CelProgram, facts: Facts): string | undefined {
  const value = evaluate(program, facts)
  if (value instanceof Uint8Array) return value.byteLength === 0 ? undefined : hashed(value)
  if (value === undefined || value === null || typeof value === 'object') return undefined
  const text = String(value)
  if (text === '') return undefined
  if (text.length <= longestValue && !text.startsWith(hashMark)) return text
  return hashed(text)
}

function hashed(value: string | Uint8Array): string {
  return `${hashMark}${hash('sha256', value, 'hex')}`
}

/**
 * A cost or limit that has no value is as if it were not configured: what a client can provoke must not make a request
 * cheaper, nor take it out of the count.
 */
function numberOf(program: CelProgram, variables: object): number | undefined {
  const value = evaluate(program, variables)
  // A whole number too large to be exact comes as a bigint, and is no less of a cost.
  if (typeof value === 'bigint') return value < 0n ? undefined : maxUint32
  if (typeof value !== 'number' || !(value >= 0)) return undefined
  return Math.min(Math.ceil(value), maxUint32)
}

function limitOf(program: CelProgram, facts: Facts): Descriptor['limit'] {
  const value = evaluate(program, facts)
  if (typeof value !== 'object' || value === null) return undefined
  const { unit, requestsPerUnit }: { unit?: unknown; requestsPerUnit?: unknown } = value
  const known = typeof unit === 'string' ? unitOf(unit) : undefined
  if (known === undefined || typeof requestsPerUnit !== 'number') return undefined
  if (!Number.isInteger(requestsPerUnit) || requestsPerUnit < 0 || requestsPerUnit > maxUint32)
    return undefined
  return { unit: known, requestsPerUnit }
}

/** Requests may not ask for limits per week. */
const requestable = new Set<LimitUnit>(limitUnits.slice(1, -1))

function unitOf(text: string): LimitUnit | undefined {
  const wanted = text.toLowerCase()
  return limitUnits.find((unit) => unit === wanted && requestable.has(unit))
}

function evaluate(program: CelProgram, variables: object): unknown {
  try {
    return program.evaluate(variables)
  } catch (error) {
    if (error instanceof CelEvaluationError) return undefined
    throw error
  }
}
