import { describe, expect, it } from 'vitest'
import { startFileMode } from '../../test/fixtures/resources.ts'

const config = `
gateways:
  default:
    port: 4000
routes:
  - name: to-a-server
    backends:
      - host: user.example:80
    policies:
      apiKey:
        keys: [{key: tg-of-a-route}]
      requestHeaderModifier:
        set:
          authorization: Bearer $TOKEN
          x-api-key: $TOKEN
          x-token-count: "12"
llm:
  gateways: default
  models:
    - name: m
      provider: openAI
      params: {apiKey: $TOKEN, baseUrl: "http://models.example/v1"}
      overrides: {api_key: $TOKEN, user: me}
  policies:
    jwtAuth:
      issuer: me
      audiences: [a]
      jwks: http://user:$TOKEN@keys.example/jwks
    apiKey:
      keys: [{key: $TOKEN, metadata: {name: ada}}]
`

describe('the effective configuration', () => {
  it('masks every secret, and nothing else', async () => {
    const replica = await startFileMode(config, { env: { TOKEN: 's3cret' } })
    const { status, body } = await replica.send('GET', '/api/config/effective', new Uint8Array())
    expect(status).toBe(200)
    const text = JSON.stringify(body)
    expect(text).not.toContain('s3cret')
    expect(text).not.toContain('tg-of-a-route')
    expect(body).toMatchObject({
      config: {
        routes: [
          {
            policies: {
              apiKey: { keys: [{ key: '***' }] },
              requestHeaderModifier: {
                set: { authorization: '***', 'x-api-key': '***', 'x-token-count': '12' },
              },
            },
          },
        ],
        llm: {
          models: [
            { params: { baseUrl: 'http://models.example/v1' }, overrides: { api_key: '***', user: 'me' } },
          ],
          policies: {
            jwtAuth: { jwks: 'http://***@keys.example/jwks' },
            apiKey: { keys: [{ key: '***', metadata: { name: 'ada' } }] },
          },
        },
      },
    })
  })
})
