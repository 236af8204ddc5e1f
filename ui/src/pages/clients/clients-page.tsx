import { PlugZap } from 'lucide-react'
import { useState } from 'react'
import { useLocation, useSearch } from 'wouter'
import { useEnteredKey } from '../../api/entered-key.ts'
import { useRecords } from '../../api/resources.ts'
import { type Listener, useGatewayState } from '../../api/state.ts'
import { ButtonLink } from '../../components/action/button.tsx'
import { classNames } from '../../components/class-names.ts'
import { CodeBlock } from '../../components/data/code-block.tsx'
import { EmptyState } from '../../components/feedback/empty-state.tsx'
import { ErrorState } from '../../components/feedback/error-state.tsx'
import { SkeletonLines } from '../../components/feedback/skeleton.tsx'
import { Field } from '../../components/form/field.tsx'
import { Input } from '../../components/form/input.tsx'
import { Select } from '../../components/form/select.tsx'
import { Card } from '../../components/layout/card.tsx'
import { Page } from '../../components/layout/page.tsx'
import { applicationGuides } from './guides/application-guides.ts'
import { codeGuides } from './guides/code-guides.ts'
import type { Guide, GuideStep } from './guides/guide.ts'
import { mcpGuides } from './guides/mcp-guides.ts'

const guides: readonly Guide[] = [...codeGuides, ...applicationGuides, ...mcpGuides]

/** Setup of clients, with the address of this gateway. */
export default function ClientsPage() {
  const { data, error, refetch } = useGatewayState()
  return (
    <Page
      title="Client setup"
      about="Snippets with the address of this gateway, ready to copy."
      actions={<ButtonLink href="/llm/keys">Virtual keys</ButtonLink>}
    >
      {!data && error ? <ErrorState error={error} onRetry={() => void refetch()} /> : null}
      {!data && !error && <SkeletonLines count={8} />}
      {data && <Clients listeners={data.listeners} />}
    </Page>
  )
}

function Clients({ listeners }: { listeners: readonly Listener[] }) {
  const chosen = new URLSearchParams(useSearch()).get('client')
  const guide = guides.find(({ id }) => id === chosen) ?? guides[0]
  if (!guide) return null
  const places = listeners.filter(({ serves }) => serves.includes(guide.serves))
  return (
    <div className="grid grid-cols-1 gap-6 lg:grid-cols-[14rem_minmax(0,1fr)]">
      <GuideList current={guide} />
      {places.length === 0 ? (
        <Card>
          <EmptyState
            icon={PlugZap}
            title={guide.serves === 'llm' ? 'No gateway serves models yet' : 'No gateway serves MCP yet'}
            action={
              <ButtonLink tone="primary" href={guide.serves === 'llm' ? '/start' : '/start?path=mcp'}>
                Get started
              </ButtonLink>
            }
          />
        </Card>
      ) : (
        <GuideView key={guide.serves} guide={guide} places={places} />
      )}
    </div>
  )
}

function GuideList({ current }: { current: Guide }) {
  const [, navigate] = useLocation()
  const groups = Map.groupBy(guides, ({ group }) => group)
  const open = (id: string) => navigate(`/clients?client=${id}`, { replace: true })
  return (
    <>
      <div className="lg:hidden">
        <Field label="Client">
          {(control) => (
            <Select
              {...control}
              value={current.id}
              onChange={open}
              options={guides.map(({ id, label }) => ({ value: id, label }))}
            />
          )}
        </Field>
      </div>
      <nav aria-label="Clients" className="space-y-5 max-lg:hidden">
        {[...groups].map(([group, members]) => (
          <div key={group}>
            <h2 className="mb-1 px-2.5 text-2xs font-medium tracking-wide text-ink-faint uppercase">
              {group}
            </h2>
            <ul className="space-y-px">
              {members.map((guide) => (
                <li key={guide.id}>
                  <button
                    type="button"
                    aria-current={guide === current ? 'true' : undefined}
                    onClick={() => open(guide.id)}
                    className={classNames(
                      'flex h-8 w-full items-center rounded-md px-2.5 text-sm whitespace-nowrap',
                      guide === current
                        ? 'bg-accent-soft font-medium text-ink'
                        : 'text-ink-soft hover:bg-hover hover:text-ink',
                    )}
                  >
                    {guide.label}
                  </button>
                </li>
              ))}
            </ul>
          </div>
        ))}
      </nav>
    </>
  )
}

function GuideView({ guide, places }: { guide: Guide; places: readonly Listener[] }) {
  const [address, setAddress] = useState(places[0]?.url ?? '')
  const [entered, setEntered] = useState<string>()
  const [key, enterKey] = useEnteredKey()
  const proposed = useFirstModel()
  const model = entered ?? proposed
  const steps = guide.steps({
    address: address.replace(/\/+$/, ''),
    model,
    key: key === '' ? undefined : key,
  })
  return (
    <div className="min-w-0 space-y-5">
      <Card>
        <div className="grid grid-cols-1 gap-4 pt-2 sm:grid-cols-3">
          <Field label="Address" help="As clients reach the gateway.">
            {(control) => (
              <Input
                {...control}
                type="url"
                list="addresses"
                value={address}
                onChange={(event) => setAddress(event.target.value)}
              />
            )}
          </Field>
          <datalist id="addresses">
            {places.map(({ url }) => (
              <option key={url} value={url} />
            ))}
          </datalist>
          {guide.serves === 'llm' && (
            <Field label="Model">
              {(control) => (
                <Input
                  {...control}
                  value={model}
                  spellCheck={false}
                  className="font-mono"
                  onChange={(event) => setEntered(event.target.value)}
                />
              )}
            </Field>
          )}
          <Field
            label="Virtual key"
            help="Optional: appears in the snippets. Stays in the memory of this page."
          >
            {(control) => (
              <Input
                {...control}
                type="password"
                value={key}
                placeholder="tg-…"
                spellCheck={false}
                className="font-mono"
                onChange={(event) => enterKey(event.target.value)}
              />
            )}
          </Field>
        </div>
      </Card>
      <Card title={guide.label} about={guide.about}>
        <ol className="max-w-4xl space-y-6">
          {steps.map((step) => (
            <StepView key={step.title} step={step} />
          ))}
        </ol>
      </Card>
    </div>
  )
}

function StepView({ step }: { step: GuideStep }) {
  return (
    <li className="space-y-2">
      <div className="flex flex-wrap items-baseline justify-between gap-x-4">
        <h3 className="text-sm">{step.title}</h3>
        {step.place && <code className="text-xs text-ink-faint">{step.place}</code>}
      </div>
      <CodeBlock label={step.title} text={step.code} />
      {step.note && <p className="text-xs text-ink-soft">{step.note}</p>}
    </li>
  )
}

/** Name of a model that clients may request; a pattern is completed by hand. */
function useFirstModel(): string {
  const { data } = useRecords<{ name?: string }>('llm.model', { limit: 20 })
  const names = data?.resources.flatMap(({ value }) => value.name ?? []) ?? []
  return names.find((name) => !name.includes('*')) ?? names[0] ?? 'gpt-5'
}
