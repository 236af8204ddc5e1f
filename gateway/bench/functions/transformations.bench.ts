import { bench, do_not_optimize, group, run } from 'mitata'
import type { Headers } from '../../src/net/http/headers.ts'
import type { Policy } from '../../src/pipeline/policy.ts'
import { compileConditional } from '../../src/policies/conditional.ts'
import { compileTransformations } from '../../src/policies/transformations/transformations.ts'
import { fixtureContext, fixtureExchange } from '../../test/fixtures/pipeline.ts'

// Cost of transformations of headers, with the copy of the headers that they edit, and of the selection of a
// conditional policy. `exchange` is the cost of the request alone, to be subtracted.

const request = new Set(['request', 'jwt'])
const options = {
  variables: { request, response: new Set([...request, 'response']) },
  scope: 'route',
  maxBodyBytes: 1_000_000,
}
const context = fixtureContext()
const headers = { host: 'gateway.test', accept: '*/*', 'user-agent': 'bench', 'x-user': 'ann' }

const twoOfRequest = compileTransformations(
  { request: { set: { 'x-path': 'request.path', 'x-user': 'request.headers["x-user"] + "@team"' } } },
  context,
  options,
)
const twoOfReply = compileTransformations(
  { response: { set: { 'x-path': 'request.path', 'x-code': 'response.code' } } },
  context,
  options,
)
const untouched: Policy = { name: 'none' }
const conditional = compileConditional(
  { conditional: [{ condition: 'request.path.startsWith("/admin/")' }, {}] },
  request,
  () => untouched,
)

function forward(policy: Policy | undefined): Headers {
  const exchange = fixtureExchange({ headers })
  policy?.onRequest?.(exchange)
  const copy = { ...headers }
  for (const edit of exchange.forwarding?.headerEdits ?? []) edit(copy)
  return copy
}

group('transformations', () => {
  bench('exchange', () => do_not_optimize(forward(undefined)))
  bench('two headers of a request', () => do_not_optimize(forward(twoOfRequest)))
  bench('two headers of a reply', () => {
    const exchange = fixtureExchange({ headers })
    do_not_optimize(twoOfReply.onReply?.(exchange, { status: 200, headers: { ...headers }, body: undefined }))
  })
})

const one = fixtureExchange({ headers })

group('conditional policy', () => {
  bench('second of two entries', () => do_not_optimize(conditional?.select?.(one)))
})

await run()
