import { useRecords } from '../../../api/resources.ts'
import type { GatewayState } from '../../../api/state.ts'
import { useSucceeded } from '../../../api/succeeded.ts'
import { GuidedPath } from '../guided-path.tsx'
import { CallStep } from './call-step.tsx'
import { KeyStep } from './key-step.tsx'
import { ModelStep } from './model-step.tsx'
import { ProviderStep } from './provider-step.tsx'

/** Provider, model, key, first call. What exists already counts as done. */
export function ModelPath({ state }: { state: GatewayState | undefined }) {
  const policies = useRecords('llm.policy', { limit: 100 })
  const models = useRecords<{ name?: string }>('llm.model', { limit: 3 })
  const providers = useRecords<{ name?: string }>('llm.provider', { limit: 3 })
  const succeeded = useSucceeded('llm')
  const count = (kind: string) => state?.counts[kind] ?? 0
  const hasModels = count('llm.model') > 0
  const hasPolicy = policies.data?.resources.some(({ name }) => name === 'apiKey') === true
  const loaded = state !== undefined && !policies.isPending && succeeded !== undefined
  const done = (value: boolean) => (loaded ? value : undefined)
  return (
    <GuidedPath
      label="First model"
      steps={[
        {
          id: 'provider',
          title: 'Connect a provider',
          done: done(count('llm.provider') > 0 || hasModels),
          about:
            count('llm.provider') > 0
              ? summary(count('llm.provider'), 'provider', namesOf(providers.data?.resources))
              : hasModels
                ? 'Models have a provider of their own.'
                : 'Its credential stays in the gateway. Clients never see it.',
          render: (next) => <ProviderStep onDone={next} />,
        },
        {
          id: 'model',
          title: 'Add a model',
          done: done(hasModels),
          about: hasModels
            ? summary(count('llm.model'), 'model', namesOf(models.data?.resources))
            : 'The name that clients request, or a pattern of names.',
          render: (next) => <ModelStep onDone={next} />,
        },
        {
          id: 'key',
          title: 'Create a virtual key',
          done: done(hasPolicy && count('llm.apiKey') > 0),
          about:
            hasPolicy && count('llm.apiKey') > 0
              ? summary(count('llm.apiKey'), 'key', [])
              : 'Clients use it instead of the credential of the provider. You can revoke it at any time.',
          render: (next) => <KeyStep hasPolicy={hasPolicy} onDone={next} />,
        },
        {
          id: 'call',
          title: 'Make the first call',
          done: done(succeeded === 'yes'),
          about: succeeded === 'yes' ? 'Requests have succeeded.' : 'A real request, as a client sends it.',
          render: () => <CallStep state={state} />,
        },
      ]}
    />
  )
}

function namesOf(records: readonly { value: { name?: string } }[] = []): readonly string[] {
  return records.flatMap(({ value }) => value.name ?? [])
}

function summary(count: number, noun: string, names: readonly string[]): string {
  const total = `${count} ${noun}${count === 1 ? '' : 's'}`
  if (names.length === 0) return total
  return `${total}: ${names.join(', ')}${count > names.length ? ', …' : ''}`
}
