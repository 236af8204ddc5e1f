import { createHmac } from 'node:crypto'
import { createLru } from '../../lib/lru.ts'
import { maxUserLength } from './htpasswd.ts'

export type VerifierOptions = {
  readonly users: ReadonlyMap<string, string>
  /** Key of the digests of verified credentials. */
  readonly key: Uint8Array
  /** Compares a password with a hash. Undefined if too many others wait. */
  readonly compare: (password: string, hash: string) => Promise<boolean> | undefined
}

export type Verification = 'valid' | 'invalid' | 'busy'

/** Result of a verified credential at once, of others later. */
export type VerifyCredential = (user: string, password: string) => Verification | Promise<Verification>

const maxVerified = 1_000
const maxPasswordLength = 1_024

/**
 * Creates the verification of credentials. Valid ones are cached by a keyed digest, so that the time of a
 * lookup depends on no secret. Unknown users cost as much as known ones: their password is compared with the
 * hash of another user, always the same one.
 */
export function createVerifier({ users, key, compare }: VerifierOptions): VerifyCredential {
  const verified = createLru<string, true>(maxVerified)
  const pending = new Map<string, Promise<Verification>>()
  const hashes = [...users.values()]

  async function verify(id: string, hash: string, password: string, isKnown: boolean): Promise<Verification> {
    // Not every library accepts an empty password.
    const result = compare(password === '' ? ' ' : password, hash)
    if (result === undefined) return 'busy'
    const isValid = (await result) && isKnown && password !== ''
    if (isValid) verified.set(id, true)
    return isValid ? 'valid' : 'invalid'
  }

  return (user, password) => {
    if (user.length > maxUserLength || password.length > maxPasswordLength) return 'invalid'
    const digest = createHmac('sha256', key)
      .update(JSON.stringify([user, password]))
      .digest()
    const id = digest.toString('base64')
    if (verified.get(id) === true) return 'valid'
    const other = createHmac('sha256', key).update(user).digest().readUInt32BE() % hashes.length
    const hash = users.get(user) ?? hashes[other] ?? ''
    // A browser sends several requests at once.
    const running =
      pending.get(id) ?? verify(id, hash, password, users.has(user)).finally(() => pending.delete(id))
    pending.set(id, running)
    return running
  }
}
