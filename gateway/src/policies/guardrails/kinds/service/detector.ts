import type { JsonObject, JsonValue } from '../../../../lib/json/json.ts'
import {
  CheckFailure,
  type CheckInput,
  type CompiledKind,
  type GuardText,
  type Rejection,
} from '../../guard.ts'
import { failsOpen, type ServiceConfig } from './config.ts'
import type { GuardService } from './service.ts'

/** Posts JSON to a path of the service. */
export type Ask = (path: string, body: JsonObject) => Promise<JsonValue>

export type DetectorOptions = {
  readonly config: ServiceConfig & { readonly action?: 'reject' | 'audit' | undefined }
  readonly service: GuardService
  readonly rejection: Rejection
}

/**
 * Compiles a guard that rejects content. `detect` returns the reason of a rejection, without content; it
 * receives texts that are not empty.
 */
export function compileDetector(
  { config, service, rejection }: DetectorOptions,
  detect: (texts: readonly GuardText[], ask: Ask) => Promise<string | undefined>,
): CompiledKind {
  return {
    audit: config.action === 'audit',
    failOpen: failsOpen(config),
    check({ texts, exchange }: CheckInput) {
      const filled = texts.filter(({ content }) => content !== '')
      if (filled.length === 0) return { kind: 'allow' }
      return service.within(exchange, async (cancellation) => {
        const ask: Ask = (path, body) => service.post({ path, body, exchange, cancellation })
        const reason = await detect(filled, ask)
        return reason === undefined ? { kind: 'allow' } : { kind: 'reject', rejection, reason }
      })
    },
  }
}

/** Failure of a response without the members of its schema. */
export function invalidResponse(kind: string, problem: string): CheckFailure {
  return new CheckFailure(`invalid ${kind} response: ${problem}`)
}

/** A name from a response for logs: only identifiers, because other texts may repeat content. */
export function nameForLog(value: JsonValue | undefined): string {
  return typeof value === 'string' && /^[\w./ -]{1,64}$/.test(value) ? value : 'unnamed'
}
