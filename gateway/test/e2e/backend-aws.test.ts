import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { verifySignature } from '../support/aws/verify-signature.ts'
import { endAfter } from '../support/cleanup.ts'
import { type MockServer, sendJson, startMockServer } from '../support/mock-server.ts'
import { type Routing, routing } from '../support/traffic.ts'

const keys = { accessKeyId: 'AKIDHTTP', secretAccessKey: 'secret-canary-of-http-55d1' }

/** A profile whose keys a program prints, with the secret on its standard error, too. */
function profileFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate aws '))
  endAfter('file', () => rmSync(folder, { recursive: true, force: true }))
  const program = join(folder, 'keys.mjs')
  const output = { Version: 1, AccessKeyId: 'AKIDPROGRAM', SecretAccessKey: keys.secretAccessKey }
  writeFileSync(program, `console.error('${keys.secretAccessKey}'); console.log('${JSON.stringify(output)}')`)
  const config = join(folder, 'config')
  writeFileSync(
    config,
    `[profile app]\nregion = eu-west-3\ncredential_process = "${process.execPath}" '${program}' $(exit)\n`,
  )
  return config
}

let aws: MockServer
let running: Routing
let url: string

beforeAll(async () => {
  aws = await startMockServer(({ method, path, headers, text }, response) => {
    const verified = verifySignature({ method, path, headers, body: text }, () => keys.secretAccessKey)
    sendJson(response, { status: verified.kind === 'valid' ? 200 : 403, body: { ...verified, text } })
  }, 'file')
  running = await routing(
    [
      {
        policies: { backendAuth: { aws: {} } },
        matches: [{ path: { pathPrefix: '/profile' } }],
        backends: [{ host: `127.0.0.1:${aws.port}` }],
      },
      {
        policies: {
          retry: { attempts: 2, codes: [503] },
          backendAuth: { aws: { ...keys, region: 'us-west-2', serviceName: 'execute-api' } },
          requestHeaderModifier: { set: { 'x-amz-meta': 'two  spaces' } },
          urlRewrite: { path: { prefix: '/stage' } },
        },
        matches: [{ path: { pathPrefix: '/api' } }],
        backends: [{ host: `127.0.0.1:${aws.port}` }],
      },
    ],
    {},
    { lifetime: 'file', env: { AWS_PROFILE: 'app', AWS_CONFIG_FILE: profileFile() } },
  )
  url = `http://127.0.0.1:${running.port}`
})

const signed = { kind: 'valid', accessKeyId: keys.accessKeyId, region: 'us-west-2', service: 'execute-api' }

it('requests to an HTTP backend are signed after rewrites, header edits and retries', async () => {
  const get = await fetch(`${url}/api/a%20b/c?z=1&a=2&a=%2F&empty`)
  expect(await get.json()).toMatchObject(signed)
  aws.next((_, response) => sendJson(response, { status: 503, body: {} }))
  const put = await fetch(`${url}/api/items`, { method: 'PUT', body: '{"a":1}' })
  expect(await put.json()).toMatchObject({ ...signed, text: '{"a":1}' })
  expect(aws.seen.map(({ path }) => path)).toEqual([
    '/stage/a%20b/c?z=1&a=2&a=%2F&empty',
    '/stage/items',
    '/stage/items',
  ])
})

it('a streamed body is signed, and refused over the limit', async () => {
  const stream = (chunks: number) =>
    new ReadableStream({
      start(controller) {
        for (let index = 0; index < chunks; index += 1) controller.enqueue(Buffer.alloc(64 * 1024, 'x'))
        controller.close()
      },
    })
  const send = (chunks: number) =>
    fetch(`${url}/api/upload`, { method: 'POST', body: stream(chunks), duplex: 'half' } as RequestInit)
  expect(await (await send(3)).json()).toMatchObject(signed)
  expect((await send(170)).status).toBe(413)
})

it('requests are signed with the keys that the program of a profile prints', async () => {
  const response = await fetch(`${url}/profile/x`)
  expect(await response.json()).toMatchObject({
    kind: 'valid',
    accessKeyId: 'AKIDPROGRAM',
    region: 'eu-west-3',
  })
})

it('a signature of the client is replaced, and no output has the secret', async () => {
  const headers = { authorization: 'AWS4-HMAC-SHA256 Credential=other', 'x-amz-security-token': 'other' }
  const response = await fetch(`${url}/api/x`, { headers })
  expect(await response.json()).toMatchObject(signed)
  expect(aws.seen.at(-1)?.headers['x-amz-security-token']).toBeUndefined()
  for (const text of [running.gateway.stdout(), running.gateway.stderr(), await running.gateway.metrics()])
    expect(text).not.toContain(keys.secretAccessKey)
})
