import { bench, do_not_optimize, run, summary } from 'mitata'
import { parseCel } from '../../src/cel/ast.ts'
import { compileCel } from '../../src/cel/cel.ts'
import { compileWithLibrary } from '../../src/cel/library.ts'
import { withSharedWorkBudget } from '../../src/cel/work-budget.ts'

// Typical rules, evaluated by the closures and by the library that stands behind them.

const rules = [
  'apiKey.group == "platform" && request.path.startsWith("/v1/")',
  '"admin" in jwt.roles',
  'jwt.tenants["acme"].roles.exists(r, r == "ops") || jwt.sub == "root"',
  'has(llmRequest.max_tokens) && llmRequest.max_tokens <= 4096 && llmRequest.model in ["small", "large"]',
  'request.path.matches("^/v1/(chat|messages)") && request.headers["x-team"] != "blocked"',
]

const roots = new Set(['request', 'jwt', 'apiKey', 'llmRequest'])

const variables = {
  request: {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { 'content-type': 'application/json', 'x-team': 'search', accept: '*/*' },
  },
  jwt: { sub: 'user-1', roles: ['reader', 'writer', 'admin'], tenants: { acme: { roles: ['dev', 'ops'] } } },
  apiKey: { id: 'k1', group: 'platform' },
  llmRequest: {
    model: 'large',
    max_tokens: 512,
    messages: Array.from({ length: 50 }, (_, index) => ({ role: 'user', content: `message ${index}` })),
  },
}

for (const rule of rules) {
  const compiled = compileCel(rule, roots)
  const parsed = parseCel(rule)
  if (compiled.kind === 'issue' || parsed.kind === 'issue') throw new Error(`rule does not compile: ${rule}`)
  const { program } = compiled
  if (program.engine !== 'closures') throw new Error(`rule is left to the library: ${rule}`)
  const library = compileWithLibrary(parsed.library, program.roots, {
    left: Number.POSITIVE_INFINITY,
    libraryStepWork: 0,
  })
  summary(() => {
    bench(`closures  ${rule}`, () => do_not_optimize(program.evaluate(variables)))
    bench(`library   ${rule}`, () => do_not_optimize(withSharedWorkBudget(() => library(variables))))
  })
}

// Typical expressions of transformations and log fields.

const computed = [
  'request.uri.setQuery("team", "search")',
  'request.headers.cookie("session")',
  'request.headers.redacted().authorization',
  'string(request.body)',
  'json(request.body).customer.id',
  'toJson({"id": jwt.sub, "roles": jwt.roles})',
  'llmRequest.filterKeys(k, !k.startsWith("x_")).merge({"user": jwt.sub})',
  'base64.encode(jwt.sub) + sha256.encode(jwt.sub)',
  'now - request.startTime < duration("5s")',
  'uuid()',
]

const body = Buffer.from(
  JSON.stringify({ customer: { id: 7 }, items: Array.from({ length: 50 }, () => 'item') }),
)
const headers = { ...variables.request.headers, authorization: 'Bearer x', cookie: 'theme=dark; session=abc' }
const request = {
  ...variables.request,
  ...{ scheme: 'https', host: 'example.com', query: '?a=1', headers, arrivedAt: Date.now() },
}
const facts = { ...variables, request, clock: { now: Date.now }, body }

summary(() => {
  for (const source of computed) {
    const compiled = compileCel(source, new Set([...roots, 'now', 'request.body']))
    if (compiled.kind === 'issue') throw new Error(`${source}: ${compiled.message}`)
    bench(source, () => do_not_optimize(compiled.program.evaluate(facts)))
  }
})

await run()
