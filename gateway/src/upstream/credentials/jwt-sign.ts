import { milliseconds } from '../../lib/duration.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { JwtSignConfig } from './oauth-config.ts'
import { compileSigner } from './signed-jwt.ts'

const defaultTtlMs = 300_000
/** `iat` is earlier than the signature, for servers whose clock is behind. */
const backdateSeconds = 10
/** A token serves requests for this share of its lifetime: a signature takes up to a millisecond. */
const reusedShare = 0.1

/** Compiles `backendAuth.jwtSign` to a function that returns a valid token. */
export function compileJwtSign(config: JwtSignConfig, context: CompileContext): () => string {
  const { clock } = context
  const sign = compileSigner(config, context)
  const ttlMs = milliseconds(config.ttl) ?? defaultTtlMs
  let signed = { token: '', until: Number.NEGATIVE_INFINITY }
  return () => {
    const now = clock.monotonic()
    if (now >= signed.until) {
      const seconds = Math.floor(clock.now() / 1_000)
      const times = { iat: seconds - backdateSeconds, exp: seconds + Math.floor(ttlMs / 1_000) }
      signed = { token: sign({ ...config.claims, ...times }), until: now + ttlMs * reusedShare }
    }
    return signed.token
  }
}
