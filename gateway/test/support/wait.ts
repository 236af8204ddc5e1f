import { setTimeout as delay } from 'node:timers/promises'

/** Asks again and again until there is a value; fails with `what` after the time limit. */
export async function until<T>(
  what: string,
  ask: () => T | undefined | false | Promise<T | undefined | false>,
  limitMs = 45_000,
): Promise<T> {
  const deadline = Date.now() + limitMs
  for (;;) {
    const value = await ask()
    if (value !== undefined && value !== false) return value
    if (Date.now() > deadline) throw new Error(`not within ${limitMs} ms: ${what}`)
    await delay(20)
  }
}

/** The promise's outcome, or a failure that names `what` after the time limit. */
export function within<T>(what: string, promise: Promise<T>, limitMs = 45_000): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`not within ${limitMs} ms: ${what}`)), limitMs)
  return Promise.race([promise, late.promise]).finally(() => clearTimeout(timer))
}
