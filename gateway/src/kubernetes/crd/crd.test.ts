import { describe, expect, it } from 'vitest'
import { sizeMistakes, structuralMistakes } from '../../../test/support/structural-schema.ts'
import { configSchema } from '../../config/schema.ts'
import { type Schema, string } from '../../schema/dsl.ts'
import { type Shape, shapeOf } from '../../schema/shape.ts'
import { gatewayBackendSpec } from '../own-kinds/gateway-backend.ts'
import { gatewayParametersSpec } from '../own-kinds/gateway-parameters.ts'
import { gatewayPolicySpec } from '../own-kinds/gateway-policy/gateway-policy.ts'
import { createCrd } from './crd.ts'
import { ownCrds } from './own-crds.ts'
import { conditionsStatus } from './status-schema.ts'

const specs: [string, Schema][] = [
  ['GatewayPolicy', gatewayPolicySpec],
  ['GatewayParameters', gatewayParametersSpec],
  ['GatewayBackend', gatewayBackendSpec],
]

/** Paths of fields for which a condition holds. */
function fieldsWhere(shape: Shape, isFound: (shape: Shape) => boolean, path = 'spec'): string[] {
  const inner = (child: Shape, step: string) => fieldsWhere(child, isFound, path + step)
  const here = isFound(shape) ? [path] : []
  switch (shape.kind) {
    case 'object':
      return [...here, ...[...shape.fields].flatMap(([name, field]) => inner(field.shape, `.${name}`))]
    case 'list':
      return [...here, ...inner(shape.item, '[]')]
    case 'map':
      return [...here, ...inner(shape.value, '.<name>')]
    case 'choice':
      return [...here, ...shape.shapes.flatMap((option) => inner(option, ''))]
    default:
      return here
  }
}

describe.each(ownCrds().map((crd) => [crd.metadata.name, crd] as const))('%s', (_, crd) => {
  it('has a structural schema with bounds', () => {
    expect(crd.spec.versions.flatMap(({ schema }) => structuralMistakes(schema.openAPIV3Schema))).toEqual([])
  })

  it('fits into the annotation of kubectl apply', () => {
    expect(sizeMistakes(crd)).toEqual([])
  })
})

describe.each(specs)('the specification of %s', (_, schema) => {
  it('contains secrets by reference only', () => {
    expect(fieldsWhere(shapeOf(schema), ({ meta }) => meta.secret === true)).toEqual([])
  })

  it('contains no files of the proxy', () => {
    expect(fieldsWhere(shapeOf(schema), ({ meta }) => meta.format === 'file')).toEqual([])
  })

  it('documents every field', () => {
    expect(fieldsWhere(shapeOf(schema), ({ kind, meta }) => kind !== 'any' && meta.doc === '')).toEqual([])
  })
})

describe('createCrd', () => {
  it('converts the schema of the whole configuration', () => {
    const crd = createCrd({
      kind: 'Whole',
      plural: 'wholes',
      shortName: 'wh',
      spec: configSchema,
      status: conditionsStatus,
      columns: [],
    })
    expect(crd.spec.versions.flatMap(({ schema }) => structuralMistakes(schema.openAPIV3Schema))).toEqual([])
  })

  it('adds the column of the age after the others', () => {
    const crd = createCrd({
      kind: 'Thing',
      plural: 'things',
      shortName: 'th',
      spec: string({ doc: '' }),
      status: conditionsStatus,
      columns: [{ name: 'Accepted', path: '.status.x', description: 'd', isWide: true }],
    })
    expect(crd.spec.versions[0]?.['additionalPrinterColumns']).toEqual([
      { name: 'Accepted', type: 'string', jsonPath: '.status.x', description: 'd', priority: 1 },
      {
        name: 'Age',
        type: 'date',
        jsonPath: '.metadata.creationTimestamp',
        description: 'Age of the object.',
      },
    ])
  })
})
