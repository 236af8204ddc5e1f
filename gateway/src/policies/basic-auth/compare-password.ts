import { argon2Verify, bcryptVerify } from 'hash-wasm'

/** bcrypt ignores further bytes, and the library refuses them. */
const maxBcryptBytes = 72

/** Compares a password with a bcrypt or argon2 hash. */
export async function comparePassword(password: string, hash: string): Promise<boolean> {
  if (hash.startsWith('$argon2')) return argon2Verify({ password, hash })
  return bcryptVerify({ password: Buffer.from(password).subarray(0, maxBcryptBytes), hash })
}
