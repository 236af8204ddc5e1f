import { Plus, Trash2 } from 'lucide-react'
import { Button } from '../../../components/action/button.tsx'
import { IconButton } from '../../../components/action/icon-button.tsx'
import { Field } from '../../../components/form/field.tsx'
import { Input, TextArea } from '../../../components/form/input.tsx'
import { useChat } from '../chat-context.ts'
import { problemOfTool, type ToolDraft } from '../model/conversation.ts'

const maxTools = 32

const example = {
  name: 'get_weather',
  description: 'Current weather of a city',
  parameters: JSON.stringify(
    { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    null,
    2,
  ),
}

/** Functions that models may call. The user answers the calls by hand. */
export function ToolsEditor() {
  const { store, state } = useChat()
  const { tools } = state.settings
  const setTools = (next: readonly ToolDraft[]) => store.setSettings({ tools: next })
  const add = () => {
    const draft = tools.length === 0 ? example : { name: '', description: '', parameters: '{}' }
    setTools([...tools, { ...draft, id: `tool-${performance.now()}` }])
  }
  return (
    <section className="space-y-3">
      <div className="flex items-center justify-between">
        <h2 className="text-sm">Tools</h2>
        <Button size="small" icon={Plus} disabled={tools.length >= maxTools} onClick={add}>
          Add function
        </Button>
      </div>
      {tools.length === 0 && (
        <p className="text-xs text-ink-faint">
          Define JSON functions, and answer the calls of the model by hand.
        </p>
      )}
      {tools.map((tool) => (
        <ToolFields
          key={tool.id}
          tool={tool}
          onChange={(change) =>
            setTools(tools.map((other) => (other.id === tool.id ? { ...other, ...change } : other)))
          }
          onRemove={() => setTools(tools.filter(({ id }) => id !== tool.id))}
        />
      ))}
    </section>
  )
}

function ToolFields({
  tool,
  onChange,
  onRemove,
}: {
  tool: ToolDraft
  onChange(change: Partial<ToolDraft>): void
  onRemove(): void
}) {
  return (
    <fieldset className="space-y-2 rounded-lg border border-line p-3">
      <legend className="sr-only">Function {tool.name}</legend>
      <div className="flex items-end gap-1">
        <div className="flex-1">
          <Field label="Name">
            {(control) => (
              <Input
                {...control}
                className="font-mono"
                value={tool.name}
                onChange={(event) => onChange({ name: event.target.value })}
              />
            )}
          </Field>
        </div>
        <IconButton
          icon={Trash2}
          tone="danger"
          label={`Remove ${tool.name || 'function'}`}
          onClick={onRemove}
        />
      </div>
      <Field label="Description">
        {(control) => (
          <Input
            {...control}
            value={tool.description}
            onChange={(event) => onChange({ description: event.target.value })}
          />
        )}
      </Field>
      <Field label="Parameters (JSON Schema)" error={problemOfTool(tool)}>
        {(control) => (
          <TextArea
            {...control}
            rows={5}
            spellCheck={false}
            className="font-mono text-xs"
            value={tool.parameters}
            onChange={(event) => onChange({ parameters: event.target.value })}
          />
        )}
      </Field>
    </fieldset>
  )
}
