import type { ThreadPool } from '../../lib/scheduling/thread-pool.ts'

/** Name of the task in the pool of threads. */
export const passwordTask = 'password'

type Request = { password: string; hash: string }

/** Deadline including the wait for a thread. */
const deadlineMs = 10_000

/** Verifies a password on a thread. The library is loaded with the first password. */
export async function verifyPassword({ password, hash }: Request): Promise<boolean> {
  const { comparePassword } = await import('./compare-password.ts')
  return comparePassword(password, hash)
}

/** Sends a password to a thread: a verification takes tenths of a second. */
export async function verifyOnThread(threads: ThreadPool, request: Request): Promise<boolean> {
  const bytes = Buffer.byteLength(request.password)
  return (await threads.run(passwordTask, request, { deadlineMs, bytes })) === true
}
