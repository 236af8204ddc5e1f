import { hash } from 'node:crypto'
import type { CelProgram } from '../../../cel/cel.ts'
import { compileCheckedCel, compileCheckedKey } from '../../../cel/checked.ts'
import { CelEvaluationError } from '../../../cel/failure.ts'
import { clientNetwork } from '../../../lib/address/client-network.ts'
import type { Facts } from '../../../pipeline/exchange.ts'
import { needsBody } from '../../../pipeline/rules.ts'
import { isAddressKey, keyVariables } from '../local-config.ts'
import { costVariables, countsTokens, type DescriptorConfig } from './config.ts'
import { type Descriptor, type LimitUnit, limitUnits, maxUint32 } from './wire.ts'

/** Compiled rate limit descriptor. */
export type CompiledDescriptor = {
  readonly counts: 'requests' | 'tokens'
  readonly needsBody: boolean
  /** Returns the descriptor of a request, or undefined if the request does not count. */
  describe(facts: Facts): Descriptor | undefined
  /** Returns the cost of a request on arrival. */
  costOfRequest(facts: Facts): number
  /** Returns the cost of a request after its token usage is available. */
  costOfTokens(facts: Facts, totalTokens: number): number
}

export function compileDescriptor(config: DescriptorConfig): CompiledDescriptor {
  const entries = config.entries.map(({ key, value }) => ({
    key,
    value: compileCheckedKey(value, keyVariables),
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

/**
 * Longer values are hashed, because expressions may return whole bodies. Values that look like a hash are
 * hashed too.
 */
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
 * Evaluates a cost. A cost without a valid value counts as not configured, so that a client cannot make a
 * request cheaper by provoking an evaluation error.
 */
function numberOf(program: CelProgram, variables: object): number | undefined {
  const value = evaluate(program, variables)
  // Integers beyond the safe range arrive as bigint.
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

/** Units that a request may specify: the protocol excludes weeks. */
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
