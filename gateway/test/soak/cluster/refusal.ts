import { until } from '../../support/wait.ts'
import type { Cluster } from './environment.ts'
import { addressOf } from './install.ts'
import { guardedModel, httpRoute, limitOf, toEcho } from './objects.ts'
import { call } from './traffic.ts'

/** From `kubectl apply` to a refused request: by a limit, and by a guard that is a Service. */
export async function refusal(cluster: Cluster): Promise<string> {
  const address = await addressOf(cluster)
  const startedAt = performance.now()
  await cluster.apply(httpRoute('limited', 'limited.example', toEcho), limitOf('limited'))
  const limited = () => call(address, { host: 'limited.example' })
  await until('a limit', async () => (await limited()).status === 429)
  const limitMs = Math.round(performance.now() - startedAt)
  await cluster.apply(...guardedModel)
  const ask = (content: string) => {
    const body = { model: 'any', messages: [{ role: 'user', content }] }
    return call(address, { host: 'model.example', path: '/v1/chat/completions', body })
  }
  await until('a model', async () => (await ask('hello')).status === 200)
  const refused = await ask('please block this')
  if (refused.status !== 403) throw new Error(`the guard did not refuse: ${refused.status} ${refused.text}`)
  return `limit enforced ${limitMs} ms after apply began, guard refuses with ${refused.status}`
}
