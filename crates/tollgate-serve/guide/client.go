package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"
)

var client = http.Client{Timeout: time.Second}

// Acquire returns zero if the request is admitted, else the time to wait.
func Acquire(url string, keys map[string]string, cost int) (time.Duration, error) {
	body, _ := json.Marshal(map[string]any{"keys": keys, "cost": cost})
	response, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode == 200 {
		return 0, nil
	}
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if err != nil {
		return 0, errors.New(response.Status)
	}
	return time.Duration(seconds) * time.Second, nil
}
