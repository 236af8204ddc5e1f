import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createManifestReader } from '../../objects/manifests/manifests.ts'
import { parseManifest } from '../../objects/manifests/parse-manifest.ts'
import { createReferences } from '../backends/references.ts'
import { createLookups, surroundingsOf } from './lookups.ts'
import { translatePolicy } from './translate-policy.ts'

const policy = {
  apiVersion: 'tollgate.dev/v1alpha1',
  kind: 'GatewayPolicy',
  metadata: { name: 'guard' },
  spec: {
    targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'chat' }],
    backend: {
      ai: {
        promptGuard: {
          request: [
            {
              googleModelArmor: {
                projectId: 'p',
                templateId: 't',
                policies: { auth: { gcp: { secretRef: { name: 'google' } } } },
              },
            },
          ],
        },
      },
    },
  },
}

/** The mistakes of a policy whose Secret has a credential. */
async function mistakesWith(credential: object): Promise<string[]> {
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'google' },
    stringData: { 'credentials.json': JSON.stringify(credential) },
  }
  const text = [policy, secret].map((object) => JSON.stringify(object)).join('\n---\n')
  const read = createManifestReader({ parse: parseManifest, yieldPoint: () => undefined })
  const { objects } = await read([{ name: 'objects.yaml', text }])
  const lookups = createLookups('default', surroundingsOf(objects, createReferences(objects)))
  const policies = [...objects.GatewayPolicy.values()]
  expect(policies).toHaveLength(1)
  return policies.flatMap((each) =>
    translatePolicy(each, lookups).fields.flatMap((field) => field.mistakesFor('llm')),
  )
}

const pem = { type: 'pkcs8', format: 'pem' } as const
const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export(pem)
const account = { type: 'service_account', client_email: 'a@example.com', private_key: key }
const place = 'spec.backend.ai.promptGuard.request[0].googleModelArmor.policies.auth.gcp.secretRef'

describe('a credential of Google in a Secret', () => {
  it.each([
    [account],
    [{ ...account, token_uri: 'https://oauth2.googleapis.com/token' }],
    [{ type: 'authorized_user', client_id: 'a', client_secret: 'b', refresh_token: 'c' }],
  ])('is valid: %#', async (credential) => {
    expect(await mistakesWith(credential)).toEqual([])
  })

  it.each([
    [{ ...account, private_key: 'secret text' }, 'private_key: is not a private key: expected PEM'],
    [
      { ...account, private_key: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export(pem) },
      'private_key: RS256 requires an RSA key',
    ],
    [
      { ...account, token_uri: 'https://sts.example.com/token' },
      'token_uri must be an https URL below googleapis.com',
    ],
    [
      { ...account, token_uri: 'http://oauth2.googleapis.com/token' },
      'token_uri must be an https URL below googleapis.com',
    ],
    [
      { type: 'impersonated_service_account', source_credentials: account },
      'service_account_impersonation_url must be an https URL',
    ],
  ])('is not valid: %#', async (credential, problem) => {
    const message = `entry credentials.json of Secret default/google: ${problem}`
    expect(await mistakesWith(credential)).toEqual([`${place}: ${message}`])
  })
})
