import { describe, expect, it } from 'vitest'
import { applyExporterEnvironment, resourceOfEnvironment } from './exporter-environment.ts'

function applied(tracing: object | undefined, env: Record<string, string>) {
  const value = { config: tracing === undefined ? {} : { tracing: { ...tracing } } }
  const mistakes: string[] = []
  applyExporterEnvironment(value, env, (message) => mistakes.push(message))
  return { tracing: value.config.tracing, mistakes }
}

describe('variables of OTLP exporters', () => {
  it('take precedence over the file, the specific ones over the general ones', () => {
    const file = { otlpEndpoint: 'http://file:4317', path: '/old', randomSampling: true }
    const general = {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://general:4318/base',
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Basic%20abc%3D, x-team = a',
    }
    expect(applied(file, general)).toEqual({
      tracing: {
        otlpEndpoint: 'http://general:4318/base',
        otlpProtocol: 'http',
        headers: { authorization: 'Basic abc=', 'x-team': 'a' },
        randomSampling: true,
      },
      mistakes: [],
    })
    const traces = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://traces:4318/exact' }
    expect(applied(file, { ...general, ...traces }).tracing).toMatchObject({
      otlpEndpoint: 'https://traces:4318/exact',
      path: '/exact',
    })
    const older = { OTLP_ENDPOINT: 'http://older:4317', OTLP_HEADERS: '{"a":"b"}', OTLP_PROTOCOL: 'GRPC' }
    expect(applied({}, { ...general, ...traces, ...older }).tracing).toMatchObject({
      otlpEndpoint: 'http://older:4317',
      otlpProtocol: 'grpc',
      headers: { a: 'b' },
    })
  })

  it('start no export without the section', () => {
    expect(applied(undefined, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a:4317' }).tracing).toBeUndefined()
  })

  it('have no effect if they are empty', () => {
    const empty = { OTEL_EXPORTER_OTLP_ENDPOINT: '', OTEL_EXPORTER_OTLP_HEADERS: ' ' }
    expect(applied({ otlpEndpoint: 'http://file:4317' }, empty).tracing).toEqual({
      otlpEndpoint: 'http://file:4317',
    })
  })

  it.each([
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' }, 'OTEL_EXPORTER_OTLP_PROTOCOL must be grpc'],
    [{ OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'canary' }, 'OTEL_EXPORTER_OTLP_TRACES_HEADERS must be a list'],
    [{ OTLP_HEADERS: '{canary' }, 'OTLP_HEADERS must be a list'],
    [{ OTLP_HEADERS: 'a b=canary' }, 'OTLP_HEADERS must be a list'],
    [{ OTLP_HEADERS: 'a=canary%' }, 'OTLP_HEADERS must be a list'],
  ])('report mistakes by name, without values: %o', (env, message) => {
    const { mistakes } = applied({}, env)
    expect(mistakes).toEqual([expect.stringContaining(message)])
    expect(mistakes.join()).not.toContain('canary')
  })
})

it('resources of the environment have the service name', () => {
  const env = { OTEL_RESOURCE_ATTRIBUTES: 'service.name=a,deployment.environment.name=eu%20west' }
  expect(resourceOfEnvironment(env)).toEqual([
    ['service.name', 'a'],
    ['deployment.environment.name', 'eu west'],
  ])
  expect(resourceOfEnvironment({ ...env, OTEL_SERVICE_NAME: 'b' })[0]).toEqual(['service.name', 'b'])
  expect(resourceOfEnvironment({ OTEL_RESOURCE_ATTRIBUTES: 'broken' })).toEqual([])
})
