import { bench, do_not_optimize, group, run } from 'mitata'
import { compileAuthentication } from '../../src/identity/authentication.ts'
import type { Policy } from '../../src/pipeline/policy.ts'
import { compileMcpAuthentication } from '../../src/policies/mcp-authentication/mcp-authentication.ts'
import { fixtureContext, fixtureExchange } from '../../test/fixtures/pipeline.ts'
import { audience, createIssuer, issuer } from '../mcp/tokens.ts'

// Cost of access token verification per request. `exchange` is the cost of the request alone, to be
// subtracted.

const users = 1_000
const callsPerToken = 100

function authentication(keySet: string): Policy {
  const clock = { now: () => Date.now(), monotonic: () => performance.now(), advance: () => {} }
  const context = { ...fixtureContext(), clock }
  const config = { issuer, audiences: [audience], jwks: { inline: keySet } }
  return compileAuthentication('tokens', [compileMcpAuthentication(config, context).check])
}

function exchangeWith(token: string) {
  return fixtureExchange({ headers: { authorization: `Bearer ${token}`, accept: '*/*' } })
}

async function admit(policy: Policy, token: string): Promise<void> {
  if ((await policy.onRequest?.(exchangeWith(token))) !== undefined) throw new Error('refused')
}

/** As on the request path: a promise is awaited only where there is one. */
function admitKnown(policy: Policy, token: string): unknown {
  const outcome = policy.onRequest?.(exchangeWith(token))
  if (outcome !== undefined) throw new Error('refused, or not known')
  return outcome
}

for (const algorithm of ['RS256', 'ES256'] as const) {
  const { keySet, token } = createIssuer(algorithm)
  const tokens = Array.from({ length: users }, (_, index) => token(`user-${index}`))
  const [first = ''] = tokens
  const known = authentication(keySet)
  for (const text of tokens) await admit(known, text)
  let next = 0
  group(algorithm, () => {
    bench('exchange', () => do_not_optimize(exchangeWith(first)))
    bench('one token, known', () => do_not_optimize(admitKnown(known, first)))
    bench(`${users} tokens in turn, known`, () => {
      next = (next + 1) % users
      do_not_optimize(admitKnown(known, tokens[next] ?? first))
    })
    bench('a token never seen', async () => {
      await admit(authentication(keySet), first)
    })
    bench('compiling, part of the one before', () => do_not_optimize(authentication(keySet)))
  })
}

await run()

for (const algorithm of ['RS256', 'ES256'] as const) {
  const { keySet, token } = createIssuer(algorithm)
  const tokens = Array.from({ length: users }, (_, index) => token(`user-${index}`))
  const policy = authentication(keySet)
  const before = process.cpuUsage()
  for (let call = 0; call < callsPerToken; call++) {
    for (const text of tokens) await admit(policy, text)
  }
  const { user, system } = process.cpuUsage(before)
  const micros = (user + system) / (users * callsPerToken)
  process.stdout.write(
    `${algorithm}: ${users} tokens, ${callsPerToken} calls with each: ${micros.toFixed(2)} us of CPU per call\n`,
  )
}
