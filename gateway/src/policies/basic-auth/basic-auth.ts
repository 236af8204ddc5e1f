import { createHmac } from 'node:crypto'
import type { AuthenticationCheck, AuthenticationOutcome } from '../../identity/authentication.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { refuse } from '../../pipeline/errors.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import {
  anyOfShapes,
  enumeration,
  filePath,
  type Infer,
  name,
  object,
  optional,
  secret,
} from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'
import {
  basicLocation,
  checkLocation,
  compileLocation,
  locationSchema,
} from '../../upstream/credentials/credential-location.ts'
import { parseHtpasswd } from './htpasswd.ts'
import { verifyOnThread } from './password-task.ts'
import { createVerifier, type Verification } from './verifier.ts'

/** `realm` of passwords. */
export const realmSchema = optional(
  name({ doc: 'Name of the area that browsers show with the login.', default: 'Restricted' }, { max: 200 }),
)

/** `basicAuth`: user names and passwords (RFC 7617). */
export const basicAuthSchema = object(
  {
    htpasswd: anyOfShapes(
      [
        secret({ doc: 'Lines of the form `user:hash`. In a file, write `$$` for each `$` of a hash.' }),
        object(
          {
            file: filePath({
              doc: 'Path of an htpasswd file. Changes apply at once.',
              example: '/etc/tollgate/htpasswd',
              holds: 'htpasswd',
            }),
          },
          { doc: 'Users in a file.' },
        ),
      ],
      { doc: 'Users with bcrypt or argon2 hashes, as `htpasswd -B` writes them.', secret: true },
    ),
    realm: realmSchema,
    mode: optional(
      enumeration(['strict', 'optional'], {
        doc: 'Authentication mode: `strict` requires a valid password, `optional` also admits requests without a password.',
        default: 'strict',
      }),
    ),
    authorizationLocation: optional(locationSchema),
  },
  {
    doc: 'Authentication with user name and password. The name is `basicAuth.username` in expressions, and the password is removed from the request.',
  },
)

export type BasicAuthConfig = Infer<typeof basicAuthSchema>

/** Verifications that wait for one in progress, over all policies; more are refused. */
const maxWaiting = 32

/** Reports invalid users of an inline text, and realms that no header can contain. */
export function checkBasicAuth(
  { htpasswd, realm, authorizationLocation }: BasicAuthConfig,
  report: ReportIssue,
): void {
  if (typeof htpasswd === 'string') {
    const parsed = parseHtpasswd(htpasswd)
    if (parsed.kind === 'invalid') report(['htpasswd'], parsed.message)
  }
  if (authorizationLocation !== undefined)
    checkLocation(authorizationLocation, (path, message) =>
      report(['authorizationLocation', ...path], message),
    )
  if (realm !== undefined && !/^[\x20-\x7e]+$/.test(realm)) report(['realm'], 'must be printable ASCII')
}

/** Compiles authentication by password. Writes `facts.basicAuth`. */
export function compileBasicAuth(config: BasicAuthConfig, context: CompileContext): AuthenticationCheck {
  const { realm = 'Restricted', mode = 'strict', authorizationLocation } = config
  const location =
    authorizationLocation === undefined ? basicLocation : compileLocation(authorizationLocation)
  const challenge = `Basic realm="${realm.replace(/["\\]/g, '\\$&')}", charset="UTF-8"`
  const queue = context.retained('password verifications', createQueue)
  const verify = createVerifier({
    users: usersOf(config, context),
    key: createHmac('sha256', context.processKey).update('basicAuth').digest(),
    compare: (password, hash) => queue.run(() => verifyOnThread(context.threads, { password, hash })),
  })

  return (exchange) => {
    const encoded = location.read(exchange.facts)
    if (encoded === undefined)
      return mode === 'optional' ? undefined : unauthorized(exchange, missing, challenge)
    const credential = decode(encoded)
    if (credential === undefined) return unauthorized(exchange, invalid, challenge)
    const { user, password } = credential
    const admit = (verification: Verification): AuthenticationOutcome => {
      if (verification === 'busy') return { kind: 'refused', reply: busy(exchange) }
      if (verification === 'invalid') return unauthorized(exchange, invalid, challenge)
      exchange.facts.basicAuth = { username: user }
      return { kind: 'accepted', credential: encoded, locations: [location] }
    }
    const verification = verify(user, password)
    return typeof verification === 'string' ? admit(verification) : verification.then(admit)
  }
}

function usersOf({ htpasswd }: BasicAuthConfig, { readFile }: CompileContext): ReadonlyMap<string, string> {
  const parsed = parseHtpasswd(typeof htpasswd === 'string' ? htpasswd : readFile(htpasswd.file))
  if (parsed.kind === 'users') return parsed.users
  throw new Error(
    `basicAuth.htpasswd${typeof htpasswd === 'string' ? '' : `: ${htpasswd.file}`} ${parsed.message}`,
  )
}

type Queue = { run<T>(work: () => Promise<T>): Promise<T> | undefined }

/** One verification at a time: the threads also serve other work. */
function createQueue(): Queue {
  let last: Promise<unknown> = Promise.resolve()
  let waiting = 0
  return {
    run(work) {
      if (waiting > maxWaiting) return undefined
      waiting += 1
      const result = last.then(work).finally(() => {
        waiting -= 1
      })
      last = result.catch(() => undefined)
      return result
    },
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true })

/** RFC 7617 section 2: the user name ends at the first colon. */
function decode(encoded: string): { user: string; password: string } | undefined {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) return undefined
  try {
    const text = decoder.decode(Buffer.from(encoded, 'base64'))
    const colon = text.indexOf(':')
    return colon < 0 ? undefined : { user: text.slice(0, colon), password: text.slice(colon + 1) }
  } catch {
    // Not UTF-8.
    return undefined
  }
}

const missing = 'no basic authentication credentials found'
const invalid = 'invalid credentials'

function unauthorized(exchange: Exchange, message: string, challenge: string): AuthenticationOutcome {
  exchange.log.refusedBy = `basic-auth: ${message}`
  const reply = refuse(exchange, {
    status: 401,
    code: 'invalid_password',
    message: `basic authentication failure: ${message}`,
    headers: { 'www-authenticate': challenge },
  })
  return { kind: 'refused', reply }
}

function busy(exchange: Exchange): Reply {
  exchange.log.refusedBy = 'basic-auth: too many verifications'
  return refuse(exchange, {
    status: 503,
    code: 'authentication_busy',
    message: 'basic authentication failure: too many logins at once, try again later',
    headers: { 'retry-after': '1' },
  })
}
