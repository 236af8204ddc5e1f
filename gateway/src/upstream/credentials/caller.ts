import type { Exchange, Facts } from '../../pipeline/exchange.ts'

/** The client on whose behalf the gateway calls a backend. */
export type Caller = {
  /** Credential accepted by authentication. */
  readonly credential: string | undefined
  /** Token (JWT) whose claims are `facts.jwt`. */
  readonly token: string | undefined
  /** Undefined for calls outside of requests. */
  readonly facts: Facts | undefined
}

/** A call without a client. */
export const noCaller: Caller = { credential: undefined, token: undefined, facts: undefined }

/** The client of a request. */
export function callerOf({ auth, facts }: Pick<Exchange, 'auth' | 'facts'>): Caller {
  return { credential: auth.credential, token: auth.token, facts }
}
