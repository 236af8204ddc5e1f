/** Users of an htpasswd file with their password hashes, or the first mistake with its line. */
export type Htpasswd =
  | { readonly kind: 'users'; readonly users: ReadonlyMap<string, string> }
  | { readonly kind: 'invalid'; readonly message: string }

const maxUsers = 10_000
export const maxUserLength = 255

/** Bounds on the cost of one verification: about two seconds, and 128 MiB. */
const maxBcryptCost = 14
const minBcryptCost = 4
const maxArgonKib = 131_072
const maxArgonPasses = 10
const maxArgonLanes = 16

/**
 * Parses an htpasswd file: `user:hash` lines, comments and empty lines. Hashes are bcrypt or argon2; weak
 * ones are mistakes. Messages contain no hash.
 */
export function parseHtpasswd(text: string): Htpasswd {
  const users = new Map<string, string>()
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const entry = line.trim()
    if (entry === '' || entry.startsWith('#')) continue
    const colon = entry.indexOf(':')
    const user = colon < 0 ? entry : entry.slice(0, colon)
    const hash = entry.slice(colon + 1)
    const problem = colon < 0 ? 'must be user:hash' : (userProblem(user, users) ?? hashProblem(hash))
    if (problem !== undefined) return { kind: 'invalid', message: `line ${index + 1} ${problem}` }
    users.set(user, hash)
    if (users.size > maxUsers) return { kind: 'invalid', message: `must have at most ${maxUsers} users` }
  }
  return users.size === 0
    ? { kind: 'invalid', message: 'must have at least one user' }
    : { kind: 'users', users }
}

function userProblem(user: string, users: ReadonlyMap<string, string>): string | undefined {
  if (user === '' || user.length > maxUserLength || /\p{Cc}/u.test(user))
    return `must have a user name of 1 to ${maxUserLength} printable characters`
  return users.has(user) ? 'repeats a user' : undefined
}

const advice = 'create it with htpasswd -B (bcrypt), or use argon2'

function hashProblem(hash: string): string | undefined {
  const bcrypt = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/.exec(hash)
  if (bcrypt !== null) return bcryptProblem(Number(bcrypt[1]))
  const argon =
    /^\$argon2(?:id|i|d)\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$[A-Za-z0-9+/]{11,}\$[A-Za-z0-9+/]{16,}$/.exec(hash)
  if (argon !== null) return argonProblem(Number(argon[1]), Number(argon[2]), Number(argon[3]))
  if (hash.startsWith('$apr1$')) return `has an MD5 hash, which is too weak: ${advice}`
  if (hash.startsWith('{SHA}')) return `has a SHA-1 hash, which is too weak: ${advice}`
  return `has no bcrypt or argon2 hash: ${advice}`
}

function bcryptProblem(cost: number): string | undefined {
  if (cost >= minBcryptCost && cost <= maxBcryptCost) return undefined
  return `has a bcrypt cost of ${cost}: it must be ${minBcryptCost} to ${maxBcryptCost}`
}

function argonProblem(kib: number, passes: number, lanes: number): string | undefined {
  if (kib > maxArgonKib || kib < 8 * lanes) return `must have m of 8 × p to ${maxArgonKib} in its argon2 hash`
  if (passes < 1 || passes > maxArgonPasses) return `must have t of 1 to ${maxArgonPasses} in its argon2 hash`
  if (lanes < 1 || lanes > maxArgonLanes) return `must have p of 1 to ${maxArgonLanes} in its argon2 hash`
  return undefined
}
