import { describe, expect, it } from 'vitest'
import {
  createMemoryDatabase,
  createSteppingClock,
  defaultConfig,
  type ReplicaOptions,
  startFileMode,
  startHybrid,
} from '../../../test/fixtures/resources.ts'
import { kinds } from '../kinds.ts'

const modes = [
  [
    'hybrid',
    (options: ReplicaOptions = {}) => {
      const clock = createSteppingClock()
      return startHybrid(createMemoryDatabase(clock).open(), clock, defaultConfig, options)
    },
  ],
  ['file', (options: ReplicaOptions = {}) => startFileMode(defaultConfig, options)],
] as const

const json = { 'content-type': 'application/json' }
const keys = '/api/config/resources/llm.apiKey'

describe.each(modes)('in %s mode', (_, start) => {
  it('lists every kind and refuses others', async () => {
    const replica = await start()
    expect(kinds).toHaveLength(13)
    for (const { name } of kinds) {
      expect(await replica.call('GET', `/${name}`)).toMatchObject({ status: 200, body: { resources: [] } })
    }
    expect(await replica.call('GET', '')).toMatchObject({ status: 200, body: { resources: [] } })
    for (const name of [
      'apiKey',
      'llm.apikey',
      'LLM.apiKey',
      '__proto__',
      'constructor',
      'llm.apiKey%20',
      'x'.repeat(5000),
    ]) {
      for (const method of ['GET', 'PUT', 'POST', 'DELETE']) {
        const answer = await replica.call(method, `/${name}`, {})
        expect(answer.status, name).toBe(400)
        expect(String(answer.body)).toMatch(/^unsupported config resource kind: /)
      }
    }
    expect((await replica.call('GET', '/apiKey')).body).toBe('unsupported config resource kind: apiKey')
  })

  it.each([
    ['POST', '/llm.apiKey', 405],
    ['DELETE', '/llm.apiKey', 405],
    ['POST', '/llm.apiKey/x', 405],
    ['PUT', '', 405],
    ['PUT', '/llm.apiKey/', 400],
    ['DELETE', '/llm.apiKey/', 400],
    ['GET', '/llm.apiKey/%ff', 400],
    ['GET', '/llm.apiKey/%zz', 400],
    ['GET', '/llm.apiKey/a%00b', 404],
    ['GET', "/llm.apiKey/'%20OR%201=1--", 404],
    ['DELETE', "/llm.model/x';%20DROP%20TABLE%20tollgate_resources;--", 404],
    ['GET', `/llm.model/${'x'.repeat(1_000_000)}`, 404],
    ['GET', '/../status/x', 404],
  ])('%s %s is refused', async (method, path, status) => {
    const answer = await (await start()).call(method, path, method === 'PUT' ? { value: {} } : undefined)
    expect(answer.status).toBe(status)
    expect(String(answer.body).length).toBeLessThan(500)
  })

  it.each([
    ['no JSON', '{', 400, 'not valid JSON'],
    ['a list', '[]', 400, 'not a JSON object'],
    ['nothing', '', 400, 'not valid JSON'],
    ['a key twice', '{"resources":[{"value":{"key":"a","key":"b"}}]}', 400, 'twice'],
    [
      'a key twice in a large body',
      `{"padding":"${'x'.repeat(300_000)}","resources":[{"value":{"key":"a","\\u006bey":"b"}}]}`,
      400,
      'twice',
    ],
    ['a large body that ends early', `{"padding":"${'x'.repeat(300_000)}`, 400, 'the body is'],
    [
      'a prototype',
      '{"resources":[{"value":{"key":"a","metadata":{"__proto__":{"admin":true}}}}]}',
      400,
      '__proto__',
    ],
    [
      'a rounded number',
      '{"resources":[{"value":{"key":"a","metadata":{"n":12345678901234567890}}}]}',
      400,
      'rounded',
    ],
    ['half a character', '{"resources":[{"value":{"key":"a","metadata":{"n":"\\ud800"}}}]}', 400, 'Unicode'],
    ['a deep nest', `{"resources":${'['.repeat(5_000)}${']'.repeat(5_000)}}`, 400, 'nested'],
    ['resources that are no list', '{"resources":{}}', 422, 'list'],
    ['an item without a value', '{"resources":[{}]}', 422, 'value'],
    ['an item that is no object', '{"resources":[1]}', 422, 'objects'],
    ['an id', '{"resources":[{"id":"x","value":{"key":"k"}}]}', 400, 'id'],
    [
      'another kind',
      '{"resources":[{"kind":"llm.model","value":{"key":"k"}}]}',
      400,
      'kind must be llm.apiKey',
    ],
    ['an unknown member', '{"resources":[{"values":{}, "value":{"key":"k"}}]}', 400, 'values'],
    ['one bad record among good ones', '{"resources":[{"value":{"key":"k"}},{"value":3}]}', 400, 'objects'],
  ])('a body with %s is refused', async (_what, body, status, message) => {
    const replica = await start()
    const answer = await replica.send('PUT', keys, Buffer.from(body), json)
    expect(answer.status).toBe(status)
    expect(answer.body).toContain(message)
    expect(replica.running().llm?.policies?.apiKey?.keys).toEqual([])
  })

  it.each([
    [{ 'content-type': 'text/plain' }, 415],
    [{ 'content-type': 'application/x-www-form-urlencoded' }, 415],
    [{ 'content-type': 'application/json; charset=latin1' }, 415],
    [{ 'content-type': 'application/json', 'content-encoding': 'gzip' }, 415],
    [{}, 415],
    [{ 'content-type': 'application/json; charset=utf-8' }, 200],
    [{ 'content-type': 'Application/JSON' }, 200],
  ])('the content type %j returns %i', async (headers, status) => {
    const replica = await start()
    expect((await replica.send('PUT', keys, Buffer.from('{}'), headers)).status).toBe(status)
  })

  it('refuses invalid UTF-8, and more than two megabytes', async () => {
    const replica = await start()
    expect((await replica.send('PUT', keys, Buffer.from([0x7b, 0xff, 0x7d]), json)).status).toBe(400)
    expect((await replica.send('PUT', keys, Buffer.alloc(2 * 1024 * 1024 + 1, 0x20), json)).status).toBe(413)
  })

  it('returns problem details if the client accepts them', async () => {
    const replica = await start()
    const answer = await replica.call('GET', '/nope', undefined, {
      accept: 'text/html, application/problem+json',
    })
    expect(answer.headers['content-type']).toBe('application/problem+json')
    expect(answer.body).toEqual({
      type: 'about:blank',
      title: 'Bad Request',
      status: 400,
      detail: 'unsupported config resource kind: nope',
    })
  })

  it('refuses programs, files, identities of the machine and addresses of metadata services', async () => {
    const ofAzure = {
      azureResourceName: 'contoso',
      azureResourceType: 'openAI',
      baseUrl: 'http://other.test',
    }
    const attempts = [
      ['mcp.target', { name: 't', stdio: { cmd: 'sh' } }, 'allowStdioTargets'],
      [
        'traffic.route',
        { name: 'r', backends: [{ mcp: { targets: [{ name: 't', stdio: { cmd: 'sh' } }] } }] },
        'allowStdioTargets',
      ],
      [
        'llm.model',
        { name: 'm', provider: 'openai', params: { apiKey: { file: '/etc/passwd' } } },
        'allowFilePaths',
      ],
      ['traffic.gateway', { name: 'g', port: 1, tls: { cert: '/a', key: '/b' } }, 'allowFilePaths'],
      [
        'mcp.target',
        { name: 't', openapi: { host: 'http://x', schema: { file: '/etc/passwd' } } },
        'allowFilePaths',
      ],
      ['mcp.target', { name: 't', mcp: { host: 'http://169.254.169.254/mcp' } }, 'allowMetadataAddresses'],
      ['mcp.target', { name: 't', mcp: { host: '[fe80::1]:80' } }, 'allowMetadataAddresses'],
      [
        'llm.model',
        { name: 'm', provider: 'openai', params: { baseUrl: 'http://2852039166/v1' } },
        'allowMetadataAddresses',
      ],
      [
        'llm.model',
        { name: 'm', provider: 'openai', params: { baseUrl: 'http://[::ffff:169.254.1.1]/' } },
        'allowMetadataAddresses',
      ],
      [
        'traffic.route',
        { name: 'r', backends: [{ host: 'metadata.google.internal:80' }] },
        'allowMetadataAddresses',
      ],
      [
        'traffic.tcpRoute',
        { name: 'r', backends: [{ host: '0xa9.254.0xa9fe:80' }] },
        'allowMetadataAddresses',
      ],
      ['llm.model', { name: 'm', provider: 'azure', params: ofAzure }, 'allowMachineIdentity'],
      [
        'traffic.route',
        {
          name: 'r',
          backends: [{ host: 'other.test:80', policies: { backendAuth: { azure: { implicit: {} } } } }],
        },
        'allowMachineIdentity',
      ],
    ] as const
    const replica = await start()
    for (const [kind, value, setting] of attempts) {
      const answer = await replica.call('PUT', `/${kind}`, { resources: [{ value }] })
      expect(answer.status, JSON.stringify(value)).toBe(403)
      expect(answer.body).toContain(`config.storage.${setting}: true`)
      expect((await replica.call('PUT', `/${kind}/${value.name}`, { value })).status).toBe(403)
    }
    const allowed = await start({ allowances: { allowStdioTargets: true } })
    const stdio = { resources: [{ value: { name: 't', stdio: { cmd: 'sh' } } }] }
    expect((await allowed.call('PUT', '/mcp.target', stdio)).status).toBe(200)
  })

  it('limits waiting changes, not reads', async () => {
    const replica = await start()
    const key = (number: number) => replica.call('DELETE', `/llm.apiKey/${number}`)
    const answers = await Promise.all(Array.from({ length: 1_010 }, (_, number) => key(number)))
    const statuses = answers.map(({ status }) => status)
    expect(statuses.filter((status) => status === 503)).toHaveLength(10)
    expect(statuses.filter((status) => status === 404)).toHaveLength(1_000)
    expect((await key(1)).status).toBe(404)
  })

  it('checks values after the expansion of references', async () => {
    const replica = await start({ allowedEnv: ['HOST', 'UNSET'], env: { HOST: '169.254' } })
    // biome-ignore lint/suspicious/noTemplateCurlyInString: references as users write them
    for (const host of ['${UNSET:-169.254.169.254}:80', '$HOST.169.254:80', '${HOST}.1.1']) {
      const answer = await replica.call('PUT', '/mcp.target', {
        resources: [{ value: { name: 't', mcp: { host } } }],
      })
      expect(answer.status, host).toBe(403)
      expect(answer.body).toContain('config.storage.allowMetadataAddresses: true')
    }
  })

  it('accepts texts that resemble restricted values', async () => {
    const replica = await start({ allowances: {} })
    const value = { key: 'k', metadata: { file: '/etc/passwd', stdio: true, at: 'http://169.254.169.254/' } }
    expect((await replica.call('PUT', '/llm.apiKey', { resources: [{ value }] })).status).toBe(200)
    const model = { name: 'metadata', provider: 'echo', defaults: { file: 'x' } }
    expect((await replica.call('PUT', '/llm.model', { resources: [{ value: model }] })).status).toBe(200)
  })

  it('accepts a returned envelope, except for the id on create', async () => {
    const replica = await start()
    const answer = await replica.call('PUT', '/llm.model', {
      resources: [{ value: { name: 'm', provider: 'echo' } }],
    })
    const [envelope] = (answer.body as { resources: object[] }).resources
    expect((await replica.call('PUT', '/llm.model/m', envelope)).status).toBe(200)
    expect((await replica.call('PUT', '/llm.model/m', { ...envelope, kind: 'llm.provider' })).status).toBe(
      400,
    )
    expect((await replica.call('PUT', '/llm.model/m', { ...envelope, vlaue: 1 })).status).toBe(400)
    expect((await replica.call('PUT', '/llm.model/m', {})).status).toBe(422)
  })

  it('returns the active configuration with sources, without secrets', async () => {
    const replica = await start()
    const model = { name: 'm', provider: 'openai', params: { apiKey: 'sk-secret' } }
    await replica.call('PUT', '/llm.model', { resources: [{ value: model }] })
    await replica.call('PUT', '/llm.apiKey', { resources: [{ value: { key: 'vk-secret' } }] })
    const { status, body } = await replica.send('GET', '/api/config/effective', Buffer.alloc(0))
    expect(status).toBe(200)
    expect(JSON.stringify(body)).not.toContain('secret')
    expect(body).toMatchObject({
      config: { llm: { models: [{ name: 'from-file' }, { params: { apiKey: '***' } }] } },
    })
  })

  it.each([
    ['GET', '/api/config/status'],
    ['GET', '/api/config/effective'],
    ['GET', '/api/config/schema'],
    ['GET', '/api/config/resources'],
    ['GET', '/api/config/resources/llm.apiKey'],
    ['GET', '/api/config/nothing'],
    ['PUT', '/api/config/resources/llm.apiKey'],
  ])('returns separate header objects for %s %s, which policies may modify', async (method, target) => {
    const replica = await start()
    const first = await replica.send(method, target, Buffer.alloc(0))
    first.headers['access-control-allow-origin'] = 'https://one.example'
    const second = await replica.send(method, target, Buffer.alloc(0))
    expect(second.headers).not.toHaveProperty('access-control-allow-origin')
  })

  it('returns its OpenAPI document', async () => {
    const replica = await start()
    const get = async (path: string) =>
      (await replica.send('GET', `/api/config/${path}`, Buffer.alloc(0))).body
    expect(await get('status')).toMatchObject({ version: '1.2.3', synchronized: true, storage: { mode: _ } })
    expect(await get('schema')).toMatchObject({ title: 'Tollgate configuration' })
    const document = await get('openapi.json')
    expect(document).toMatchObject({ openapi: '3.1.0' })
    const { paths, components } = document as {
      paths: object
      components: { schemas: Record<string, { properties?: object }> }
    }
    expect(Object.keys(paths).filter((path) => path.endsWith('/{id}'))).toHaveLength(13)
    expect(components.schemas['llm_model']?.properties).toHaveProperty('provider')
    expect(components.schemas['llm_apiKey']?.properties).toHaveProperty('keyHash')
    expect(components.schemas['traffic_gateway']?.properties).toHaveProperty('name')
    expect((await replica.send('POST', '/api/config/status', Buffer.alloc(0))).status).toBe(405)
    expect((await replica.send('GET', '/api/config/nothing', Buffer.alloc(0))).status).toBe(404)
  })
})

it('the effective configuration names the source of each part', async () => {
  const replica = await modes[0][1]()
  await replica.call('PUT', '/llm.model', { resources: [{ value: { name: 'm', provider: 'echo' } }] })
  await replica.call('PUT', '/traffic.gateway', { resources: [{ value: { name: 'g', port: 8080 } }] })
  const { body } = await replica.send('GET', '/api/config/effective', Buffer.alloc(0))
  expect((body as { sources: unknown }).sources).toEqual([
    { path: 'llm.models[0]', source: 'file' },
    { path: 'llm.models[1]', source: 'database' },
    { path: 'llm.policies', source: 'file' },
    { path: 'gateways.g', source: 'database' },
  ])
})
