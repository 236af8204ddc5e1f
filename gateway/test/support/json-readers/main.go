// Reads one JSON text in base64 per line and writes what encoding/json makes of it, one JSON object per line.
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"os"
)

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type request struct {
	Model     string    `json:"model"`
	MaxTokens int       `json:"max_tokens"`
	Messages  []message `json:"messages"`
}

type part struct {
	Text string `json:"text"`
}

func textsOf(messages []message) []string {
	texts := []string{}
	for _, each := range messages {
		var text string
		var parts []part
		if json.Unmarshal(each.Content, &text) == nil {
			texts = append(texts, text)
		} else if json.Unmarshal(each.Content, &parts) == nil {
			for _, one := range parts {
				texts = append(texts, one.Text)
			}
		}
	}
	return texts
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		bytes, _ := base64.StdEncoding.DecodeString(lines.Text())
		var read request
		err := json.Unmarshal(bytes, &read)
		record := map[string]any{"model": read.Model, "max_tokens": read.MaxTokens, "texts": textsOf(read.Messages)}
		if err != nil {
			record = map[string]any{"error": err.Error()}
		}
		line, _ := json.Marshal(record)
		os.Stdout.Write(append(line, '\n'))
	}
}
