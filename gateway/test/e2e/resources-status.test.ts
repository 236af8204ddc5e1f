import { readFileSync, writeFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { startGateway } from '../support/gateway.ts'
import { keyedEcho, resourceApi, sqliteUrl, statusWith, stored } from '../support/resource-api.ts'
import { until } from '../support/wait.ts'

it('stays not synchronized while the file is invalid, though the API continues to change the active configuration', async () => {
  const gateway = await startGateway(stored(keyedEcho, sqliteUrl()))
  const good = readFileSync(gateway.file, 'utf8')
  writeFileSync(gateway.file, good.replace(/\}\s*$/, ',"nonsense":true}'))
  await until('the file is refused', async () => !(await gateway.status()).synchronized)
  await resourceApi(gateway).create('llm.apiKey', { key: 'written-meanwhile' })
  expect(await statusWith(gateway, 'written-meanwhile')).toBe(200)
  const status = await gateway.status()
  expect(status.synchronized).toBe(false)
  expect(status.lastError).toContain('nonsense')
  writeFileSync(gateway.file, good)
  await until('the file runs again', async () => (await gateway.status()).synchronized)
})
