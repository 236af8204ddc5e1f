import { describe, expect, it } from 'vitest'
import { createEgressPolicies, type EgressOptions } from './policies.ts'

const adminPort = 15_000

function policies(options: Partial<EgressOptions> = {}) {
  return createEgressPolicies({
    adminPort: () => adminPort,
    allowsMetadata: false,
    allowsMachineIdentity: false,
    allowsFileCredentials: false,
    fileIsWritable: false,
    origin: 'file',
    ...options,
  })
}

const refuses = (policy: ReturnType<typeof policies>['file'], address: string, port = 80, host = address) =>
  policy.refuses({ host, address, port }) !== undefined

const metadataAddresses = [
  '169.254.169.254',
  '169.254.170.2',
  '::ffff:169.254.169.254',
  '::ffff:a9fe:a9fe',
  '::169.254.169.254',
  '::ffff:0:169.254.169.254',
  '64:ff9b::169.254.169.254',
  '64:ff9b:1::a9fe:a9fe',
  '64:ff9b:1:a9fe:a9:fe00::',
  '2002:a9fe:a9fe::1',
  '2001:0:4136:e378:8000:63bf:5601:5601',
  '2001:db8::5efe:169.254.169.254',
  'fe80::1',
  'fe80::1%eth0',
  'fd00:ec2::254',
  'fd00:ec2::23',
  'fd20:ce::254',
  '168.63.129.16',
  '::ffff:168.63.129.16',
  '100.100.100.200',
  '64:ff9b::100.100.100.200',
  '192.0.0.192',
]

const ordinaryAddresses = [
  '127.0.0.1',
  '10.0.0.1',
  '192.168.1.1',
  '::1',
  'fd00:1::1',
  '93.184.216.34',
  '64:ff9b::8.8.8.8',
]

it('sockets are permitted in the configuration file only', () => {
  const { file, api, document } = policies()
  expect([file, api, document].map(({ allowsSockets }) => allowsSockets)).toEqual([
    true,
    undefined,
    undefined,
  ])
  expect(policies({ fileIsWritable: true }).file.allowsSockets).toBe(true)
  for (const origin of ['cluster', 'manifests'] as const)
    for (const policy of Object.values(policies({ origin }))) expect(policy.allowsSockets).toBeUndefined()
})

describe('identities of the machine', () => {
  const hostsOf = (options: Partial<EgressOptions>) => {
    const { file, api, document } = policies(options)
    return [file, api, document].map(({ identityHosts }) => identityHosts)
  }

  it('are permitted in the configuration file only', () => {
    expect(hostsOf({})).toEqual(['any', undefined, undefined])
    expect(hostsOf({ fileIsWritable: true })).toEqual(['own', undefined, undefined])
    for (const origin of ['cluster', 'manifests'] as const)
      expect(hostsOf({ origin })).toEqual([undefined, undefined, undefined])
  })

  it('are sent to hosts of their cloud only if others may use them', () => {
    const allowsMachineIdentity = true
    expect(hostsOf({ allowsMachineIdentity })).toEqual(['any', 'cloud', undefined])
    expect(hostsOf({ allowsMachineIdentity, fileIsWritable: true })).toEqual(['cloud', 'cloud', undefined])
    for (const origin of ['cluster', 'manifests'] as const)
      expect(hostsOf({ allowsMachineIdentity, origin })).toEqual(['cloud', 'cloud', 'cloud'])
  })
})

it('credentials of the file are sent to hosts of the file, and to others only if it permits them', () => {
  const ownersOf = (options: Partial<EgressOptions>) => {
    const { file, api, document } = policies(options)
    return [file, api, document].map(({ isOfOperator }) => isOfOperator === true)
  }
  expect(ownersOf({})).toEqual([true, false, false])
  expect(ownersOf({ allowsFileCredentials: true })).toEqual([true, true, false])
  for (const origin of ['cluster', 'manifests'] as const)
    expect(ownersOf({ origin })).toEqual([false, false, false])
})

describe('metadata addresses', () => {
  it.each(metadataAddresses)('%s is rejected for destinations of the API and of documents', (address) => {
    const { api, document, file } = policies()
    expect(refuses(api, address)).toBe(true)
    expect(refuses(api, address, 80, 'innocent.example')).toBe(true)
    expect(refuses(document, address)).toBe(true)
    expect(refuses(file, address)).toBe(false)
    expect(refuses(policies({ allowsMetadata: true }).api, address)).toBe(false)
  })

  it.each(ordinaryAddresses)('%s is not one', (address) => {
    expect(refuses(policies({ fileIsWritable: true }).api, address)).toBe(false)
  })

  it('are rejected for names in a file written by the API, and allowed as literals', () => {
    const { file } = policies({ fileIsWritable: true })
    expect(refuses(file, '169.254.169.254', 80, 'innocent.example')).toBe(true)
    expect(refuses(file, '169.254.169.254', 80, '0xa9fea9fe')).toBe(true)
    expect(refuses(file, '169.254.169.254')).toBe(false)
    const { file: allowed } = policies({ fileIsWritable: true, allowsMetadata: true })
    expect(refuses(allowed, '169.254.169.254', 80, 'innocent.example')).toBe(false)
  })

  it('name the setting that allows them', () => {
    const reason = policies().api.refuses({ host: 'innocent.example', address: 'fe80::1', port: 80 })
    expect(reason).toBe(
      'innocent.example:80 (fe80::1) is a link-local or metadata address: config.storage.allowMetadataAddresses allows it',
    )
  })
})

describe('objects', () => {
  const ofCluster = policies({ origin: 'cluster', allowsMetadata: true })
  const ofManifests = policies({ origin: 'manifests', allowsMetadata: true })

  it.each(metadataAddresses)('cannot have the metadata address %s as a destination', (address) => {
    for (const policy of [...Object.values(ofCluster), ...Object.values(ofManifests)]) {
      expect(refuses(policy, address)).toBe(true)
      expect(refuses(policy, address, 80, 'innocent.example')).toBe(true)
    }
  })

  it('cannot have names that resolve to this machine, in a cluster', () => {
    for (const address of ['127.0.0.1', '0.0.0.0', '::1', '::ffff:127.0.0.1']) {
      expect(refuses(ofCluster.file, address, 80, 'innocent.example')).toBe(true)
      expect(refuses(ofCluster.file, address)).toBe(false)
      expect(refuses(ofManifests.file, address, 80, 'innocent.example')).toBe(false)
    }
  })

  it('can have addresses of Pods and Services', () => {
    for (const address of ['10.0.0.1', '192.168.1.1', '100.64.3.7', 'fd00:1::1', '93.184.216.34']) {
      for (const { file } of [ofCluster, ofManifests]) {
        expect(refuses(file, address)).toBe(false)
        expect(refuses(file, address, 80, 'web.team-a.svc')).toBe(false)
      }
    }
  })
})

describe('the admin address', () => {
  const spellings = [
    '127.0.0.1',
    '127.0.0.53',
    '0.0.0.0',
    '::',
    '::1',
    '0:0:0:0:0:0:0:1',
    '::ffff:127.0.0.1',
    '::ffff:0.0.0.0',
    '64:ff9b::127.0.0.1',
  ]

  it.each(spellings)('is rejected as %s under every policy', (address) => {
    for (const policy of Object.values(policies({ allowsMetadata: true }))) {
      expect(refuses(policy, address, adminPort)).toBe(true)
      expect(refuses(policy, address, adminPort, 'localhost')).toBe(true)
      expect(refuses(policy, address, adminPort + 1)).toBe(false)
    }
  })

  it('does not include the same port of another machine', () => {
    expect(refuses(policies().file, '10.0.0.1', adminPort)).toBe(false)
  })
})

it('policies have separate keys, so that they share no connections', () => {
  expect(new Set(Object.values(policies()).map(({ key }) => key)).size).toBe(3)
})
