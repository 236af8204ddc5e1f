import type { StructuralSchema } from './structural.ts'

// Schemas of `status`, as those of the Gateway API.

const dnsLength = 253

function text(description: string, maxLength: number, more: StructuralSchema = {}): StructuralSchema {
  return { description, type: 'string', maxLength, ...more }
}

const conditions: StructuralSchema = {
  description: 'Current conditions.',
  type: 'array',
  maxItems: 8,
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['type'],
  items: {
    type: 'object',
    required: ['type', 'status', 'lastTransitionTime', 'reason', 'message'],
    properties: {
      type: text('Type of the condition.', 316, { minLength: 1 }),
      status: { description: 'Status of the condition.', type: 'string', enum: ['True', 'False', 'Unknown'] },
      observedGeneration: {
        description: 'Generation of the object that the condition describes.',
        type: 'integer',
        format: 'int64',
        minimum: 0,
      },
      lastTransitionTime: {
        description: 'Time of the last change of the status.',
        type: 'string',
        format: 'date-time',
        maxLength: 64,
      },
      reason: text('Reason of the status, one word.', 1024, {
        minLength: 1,
        pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$',
      }),
      message: text('Details for people.', 32_768),
    },
  },
}

/** Status with conditions only. */
export const conditionsStatus: StructuralSchema = {
  description: 'State that the controller reports.',
  type: 'object',
  properties: { conditions },
}

const ancestorRef: StructuralSchema = {
  description: 'Object that the policy has an effect on.',
  type: 'object',
  required: ['name'],
  properties: {
    group: text('Group.', dnsLength),
    kind: text('Kind.', 63, { minLength: 1 }),
    namespace: text('Namespace.', 63, { minLength: 1 }),
    name: text('Name.', dnsLength, { minLength: 1 }),
    sectionName: text('Section.', dnsLength, { minLength: 1 }),
    port: { description: 'Port.', type: 'integer', format: 'int32', minimum: 1, maximum: 65_535 },
  },
}

/** `PolicyStatus` of the Gateway API. */
export const policyStatus: StructuralSchema = {
  description: 'State that controllers report, for each Gateway with an effect of the policy.',
  type: 'object',
  required: ['ancestors'],
  properties: {
    ancestors: {
      description: 'Gateways with an effect of the policy.',
      type: 'array',
      maxItems: 16,
      'x-kubernetes-list-type': 'atomic',
      items: {
        type: 'object',
        required: ['ancestorRef', 'controllerName', 'conditions'],
        properties: {
          ancestorRef,
          controllerName: text('Controller that reports.', dnsLength, { minLength: 1 }),
          conditions,
        },
      },
    },
  },
}
