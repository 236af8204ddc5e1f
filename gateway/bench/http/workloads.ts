import type { Workload } from '../llm/workloads.ts'
import { type RequestParts, requestText } from '../measure/request.ts'
import type { Subject } from '../subjects/processes.ts'

const connections = 16
const target = 1.3

/** The upstream's response, 1 kB. */
export const httpAnswer = JSON.stringify({
  items: Array.from({ length: 7 }, (_, index) => ({
    id: index,
    name: `item ${index}`,
    description: 'A gateway stands between clients and services. '.repeat(2).trim(),
  })),
  complete: true,
})

/** Requests of plain HTTP, over the routes that `pathOf` leads to. */
export function httpWorkloads(pathOf: (connection: number, subject: Subject) => string): Workload[] {
  const requests = (subject: Subject, parts: Pick<RequestParts, 'method' | 'headers' | 'body'>) =>
    Promise.resolve(
      Array.from({ length: connections }, (_, index) => {
        const headers = { ...commonHeaders, ...parts.headers }
        return requestText(subject, { ...parts, headers, path: `${pathOf(index, subject)}?page=2` })
      }),
    )
  const common = { ending: '"complete":true}', connections, target }
  const body = JSON.stringify({ order: 7, note: 'As soon as you can, please. '.repeat(35) }).slice(0, 1024)
  const json = { 'content-type': 'application/json' }
  return [
    {
      ...common,
      name: 'http-get',
      title: 'plain HTTP, GET of 1 kB',
      body: Buffer.alloc(0),
      requestsTo: (subject) => requests(subject, { method: 'GET', headers: {}, body: '' }),
    },
    {
      ...common,
      name: 'http-post',
      title: 'plain HTTP, POST of 1 kB, answered with 1 kB',
      body: Buffer.from(body),
      requestsTo: (subject) => requests(subject, { method: 'POST', headers: json, body }),
    },
  ]
}

const commonHeaders = {
  accept: 'application/json',
  'accept-encoding': 'gzip, br',
  'user-agent': 'bench',
  authorization: 'Bearer 3f8a1c5e7d9b2046',
  'x-request-id': '0d5f7c1e-2b7a-4f6e-9c43-1f0a8a7e6b21',
}

export type RouteChange = {
  /** A text that every route has. */
  mark?: string
  /** A text that one route in the middle has instead. */
  markOfOne?: string
}

/** So many routes, half by exact path, half by prefix. */
export function httpSections(
  port: number,
  upstreamPort: number,
  { count, mark = '1', markOfOne = mark }: { count: number } & RouteChange,
): { gateways: object; routes: object[] } {
  return {
    gateways: { default: { port } },
    routes: Array.from({ length: count }, (_, index) => ({
      name: `route-${index}`,
      matches: [{ path: index % 2 === 0 ? { exact: `${base(index)}/items` } : { pathPrefix: base(index) } }],
      ...(mark === '1'
        ? {}
        : {
            policies: {
              requestHeaderModifier: {
                set: { 'x-route': index === Math.floor(count / 2) ? markOfOne : mark },
              },
            },
          }),
      backends: [{ host: `127.0.0.1:${upstreamPort}` }],
    })),
  }
}

/** A path that leads to one of `count` routes, another one for each connection, exact and prefix in turn. */
export function httpPath(connection: number, count: number): string {
  const step = Math.floor(count / connections) | 1
  return `${base((connection * step) % count)}/items`
}

function base(index: number): string {
  return `/team-${index}/service/v1`
}
