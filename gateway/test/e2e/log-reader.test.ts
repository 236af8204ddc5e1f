import { expect, it } from 'vitest'
import { startGateway } from '../support/gateway.ts'
import { aliceKey, llmConfig } from '../support/llm-config.ts'
import { within } from '../support/wait.ts'

const models = { models: [{ name: 'echo', provider: 'echo' }] }

async function askModels(url: string): Promise<number> {
  const response = await fetch(`${url}/v1/models`, {
    headers: { authorization: `Bearer ${aliceKey}` },
    signal: AbortSignal.timeout(20_000),
  })
  await response.arrayBuffer()
  return response.status
}

it('continues to serve after the reader of its log has gone, and ends on a signal', async () => {
  const gateway = await startGateway(llmConfig({}, models))
  gateway.child.stdout?.destroy()
  for (let request = 0; request < 10; request++) {
    expect(await askModels(gateway.url)).toBe(200)
    // Longer than lines wait for company, so that each is written on its own.
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  await gateway.stop()
})

it('continues to serve while the reader of its log is stopped, and ends on a signal', async () => {
  const gateway = await startGateway(llmConfig({}, models))
  gateway.child.stdout?.pause()
  // More lines than the capacity of a pipe.
  for (let request = 0; request < 2500; request++) expect(await askModels(gateway.url)).toBe(200)
  gateway.child.once('exit', () => gateway.child.stdout?.resume())
  await within('the gateway ends', gateway.stop())
})
