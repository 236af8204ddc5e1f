import { bench, do_not_optimize, run, summary } from 'mitata'
import type { RequestFacts } from '../../src/pipeline/exchange.ts'
import { compileRouteTable, type RouteEntry } from '../../src/pipeline/routing/route-table.ts'
import { fixtureExchange } from '../../test/fixtures/pipeline.ts'

// Cost of route selection per request and of route compilation per reload, by number of routes.

/**
 * Half of the routes have exact paths, half prefixes; every tenth has its own hostname, every seventh a
 * method.
 */
function routes(count: number): RouteEntry<number>[] {
  return Array.from({ length: count }, (_, index) => ({
    hostnames: index % 10 === 0 ? [`tenant-${index}.example.com`] : index % 10 === 1 ? ['*.example.com'] : [],
    matches: [
      {
        path: { kind: index % 2 === 0 ? 'exact' : 'prefix', value: `/team-${index}/service/v1` },
        method: index % 7 === 0 ? 'POST' : undefined,
        headers: [],
        query: [],
      },
    ],
    target: index,
  }))
}

function request(path: string, host: string): RequestFacts {
  return fixtureExchange({ path, host, method: 'POST' }).facts.request
}

const requests = {
  'exact path': request('/team-4/service/v1', 'gateway.example.com'),
  'prefix, three segments below': request('/team-5/service/v1/items/42/parts', 'gateway.example.com'),
  'hostname of its own': request('/team-0/service/v1', 'tenant-0.example.com:8443'),
  'no route': request('/elsewhere/service/v1/items', 'unknown.example.com'),
}

const counts = [10, 100, 10_000]

for (const [name, facts] of Object.entries(requests)) {
  summary(() => {
    for (const count of counts) {
      const find = compileRouteTable(routes(count))
      bench(`${name}: ${count} routes`, () => do_not_optimize(find(facts)))
    }
  })
}

for (const count of counts) {
  const entries = routes(count)
  bench(`compile ${count} routes`, () => do_not_optimize(compileRouteTable(entries)))
}

await run()
