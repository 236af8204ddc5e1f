import { describe, expect, it } from 'vitest'
import type { GatewayParametersSpec } from '../own-kinds/gateway-parameters.ts'
import { mergedMistakes, mergeParameters, parameterMistakes, reservedVariables } from './parameters.ts'

describe('mergeParameters', () => {
  it.each<[string, GatewayParametersSpec, GatewayParametersSpec, GatewayParametersSpec]>([
    [
      'replaces variables by name',
      {
        env: [
          { name: 'A', value: '1' },
          { name: 'B', value: '2' },
        ],
      },
      {
        env: [
          { name: 'C', value: '3' },
          { name: 'A', value: '4' },
        ],
      },
      {
        env: [
          { name: 'A', value: '4' },
          { name: 'B', value: '2' },
          { name: 'C', value: '3' },
        ],
      },
    ],
    [
      'merges the image by field',
      { image: { registry: 'r', repository: 'a', digest: 'sha256:1' } },
      { image: { repository: 'b' } },
      { image: { registry: 'r', repository: 'b', digest: 'sha256:1' } },
    ],
    [
      'replaces a digest by a tag',
      { image: { repository: 'a', digest: 'sha256:1' } },
      { image: { tag: '2' } },
      { image: { repository: 'a', tag: '2' } },
    ],
    [
      'merges resources by name',
      { resources: { requests: { cpu: '1', memory: '1Gi' } } },
      { resources: { requests: { cpu: 2 }, limits: { memory: '2Gi' } } },
      { resources: { requests: { cpu: 2, memory: '1Gi' }, limits: { memory: '2Gi' } } },
    ],
    [
      'merges annotations of the service',
      { service: { type: 'NodePort', annotations: { a: '1', b: '2' } } },
      { service: { annotations: { b: '3' } } },
      { service: { type: 'NodePort', annotations: { a: '1', b: '3' } } },
    ],
    [
      'replaces autoscaler and budget',
      {
        horizontalPodAutoscaler: { maxReplicas: 5, minReplicas: 2 },
        podDisruptionBudget: { minAvailable: 1 },
      },
      { horizontalPodAutoscaler: { maxReplicas: 9 }, podDisruptionBudget: { maxUnavailable: '50%' } },
      { horizontalPodAutoscaler: { maxReplicas: 9 }, podDisruptionBudget: { maxUnavailable: '50%' } },
    ],
    [
      'merges overlays in sequence',
      { overlays: { podTemplate: { spec: { nodeSelector: { a: '1' } } } } },
      { overlays: { podTemplate: { spec: { nodeSelector: { b: '2' } } } } },
      { overlays: { podTemplate: { spec: { nodeSelector: { a: '1', b: '2' } } } } },
    ],
    [
      'keeps fields of the class',
      { replicas: 2, shutdown: { min: '1s' } },
      {},
      { replicas: 2, shutdown: { min: '1s' } },
    ],
  ])('%s', (_, ofClass, ofGateway, merged) => {
    expect(mergeParameters(ofClass, ofGateway)).toEqual(merged)
  })

  it('returns the parameters of one side, and none of neither', () => {
    expect(mergeParameters({ replicas: 2 }, undefined)).toEqual({ replicas: 2 })
    expect(mergeParameters(undefined, { replicas: 3 })).toEqual({ replicas: 3 })
    expect(mergeParameters(undefined, undefined)).toEqual({})
  })
})

describe('parameterMistakes', () => {
  it.each(reservedVariables)('refuses the reserved variable %s', (name) => {
    expect(
      parameterMistakes({
        env: [
          { name: 'OTHER', value: '' },
          { name, value: 'x' },
        ],
      }),
    ).toEqual([`env[1].name must not be ${name}: the controller sets this variable`])
  })

  it.each<[GatewayParametersSpec, string]>([
    [
      {
        env: [
          { name: 'A', value: '1' },
          { name: 'A', value: '2' },
        ],
      },
      'env[1].name must be unique: A is set before',
    ],
    [{ env: [{ name: 'A=B', value: '1' }] }, 'env[0].name must not contain "="'],
    [{ shutdown: { min: '2m' } }, 'shutdown.min must be at most shutdown.max'],
    [{ shutdown: { min: '11m', max: '1h' } }, 'shutdown.min must be at most 10m'],
    [
      { horizontalPodAutoscaler: { minReplicas: 3, maxReplicas: 2 } },
      'horizontalPodAutoscaler.minReplicas must be at most horizontalPodAutoscaler.maxReplicas',
    ],
    [
      { overlays: { deployment: { spec: { selector: {} } } } },
      'overlays.deployment.spec.selector must not be set: it is immutable',
    ],
    [
      { overlays: { podTemplate: { spec: { containers: [{ $patch: 'merge' }] } } } },
      'overlays.podTemplate.spec.containers[0].$patch is not supported: use $patch with the value delete or replace',
    ],
    [
      {
        overlays: {
          podTemplate: { spec: { containers: [{ name: 'proxy', env: [{ name: 'GATEWAY', value: 'x' }] }] } },
        },
      },
      'overlays.podTemplate must not set GATEWAY: the controller sets this variable',
    ],
    [
      {
        overlays: {
          deployment: {
            spec: { template: { spec: { containers: [{ name: 'proxy', env: [{ name: 'TOKEN_FILE' }] }] } } },
          },
        },
      },
      'overlays.deployment.spec.template must not set TOKEN_FILE: the controller sets this variable',
    ],
  ])('reports %j', (spec, mistake) => {
    expect(parameterMistakes(spec)).toEqual([mistake])
  })

  it('reports overlays of objects that do not exist, for merged parameters only', () => {
    const spec: GatewayParametersSpec = { overlays: { podDisruptionBudget: { spec: {} } } }
    expect(parameterMistakes(spec)).toEqual([])
    expect(mergedMistakes(spec)).toEqual([
      'overlays.podDisruptionBudget must be used with podDisruptionBudget',
    ])
    expect(mergedMistakes({ ...spec, podDisruptionBudget: { minAvailable: 1 } })).toEqual([])
  })

  it('accepts parameters without mistakes', () => {
    expect(
      parameterMistakes({ env: [{ name: 'A', value: '1' }], shutdown: { min: '5s', max: '5s' } }),
    ).toEqual([])
  })
})
